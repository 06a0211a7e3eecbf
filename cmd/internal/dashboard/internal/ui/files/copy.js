// Copies a text of the page: that of the element which a button names, or of the one before it. The page listens, not each button, so that those work
// too which a live update brings.
"use strict";
document.addEventListener("click", (e) => {
  const button = e.target.closest("button[data-copy]");
  if (!button) return;
  const marked = window.getSelection();
  marked.selectAllChildren(document.getElementById(button.dataset.copy) || button.previousElementSibling);
  const done = document.execCommand("copy"); // navigator.clipboard needs https
  marked.removeAllRanges();
  button.textContent = done ? "Copied" : "Select it and copy";
});
