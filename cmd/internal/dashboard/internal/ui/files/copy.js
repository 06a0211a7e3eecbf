// Copies a text of the page. Without scripts the button is not shown.
"use strict";
for (const button of document.querySelectorAll("button[data-copy]")) {
  const text = document.getElementById(button.dataset.copy);
  if (!text) continue;
  button.hidden = false;
  button.addEventListener("click", () => {
    const marked = window.getSelection();
    marked.selectAllChildren(text);
    const done = document.execCommand("copy"); // navigator.clipboard needs https
    marked.removeAllRanges();
    button.textContent = done ? "Copied" : "Select it and copy";
  });
}
