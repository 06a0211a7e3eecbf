// Shows each time also in the browser's time zone, if the user asks for that. Pages have times in UTC.
"use strict";
(() => {
  const button = document.getElementById("times");
  if (!button || !window.localStorage) return;
  const utc = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) UTC$/;
  const day = new Intl.DateTimeFormat("sv", { dateStyle: "short" });
  const clock = new Intl.DateTimeFormat("sv", { timeStyle: "medium" });

  function show() {
    const on = button.getAttribute("aria-pressed") === "true";
    for (const element of document.getElementsByTagName("time")) {
      const found = on && (utc.exec(element.textContent) || (/^\d\d:\d\d:\d\d$/.test(element.textContent) && utc.exec(element.title)));
      if (!found) {
        element.removeAttribute("data-local");
        continue;
      }
      const at = new Date(found[1] + "T" + found[2] + "Z");
      const local = (day.format(at) === found[1] ? "" : day.format(at) + " ") + clock.format(at) + " here";
      if (element.getAttribute("data-local") !== local) element.setAttribute("data-local", local);
    }
  }
  function choose(on) {
    button.setAttribute("aria-pressed", String(on));
    localStorage.setItem("times", on ? "local" : "utc");
    show();
  }
  button.addEventListener("click", () => choose(button.getAttribute("aria-pressed") !== "true"));
  button.hidden = false;
  choose(localStorage.getItem("times") === "local");
  const live = document.getElementById("live");
  if (live) new MutationObserver(show).observe(live, { childList: true, characterData: true, subtree: true });
})();
