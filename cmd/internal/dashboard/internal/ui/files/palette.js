// "/" opens a dialog to go to a queue, an exchange or a page by its name.
"use strict";
(() => {
  const dialog = document.getElementById("palette"), button = document.getElementById("goto");
  if (!dialog || !button || !dialog.showModal) return;
  const field = dialog.querySelector("input"), list = dialog.querySelector("ul"), status = dialog.querySelector("p");
  let hits = [], at = 0, asked = 0, timer = 0, shown = null; // shown: what was typed for these hits

  function choose(n) {
    at = hits.length === 0 ? 0 : (n + hits.length) % hits.length;
    for (const [i, item] of Array.from(list.children).entries()) item.setAttribute("aria-selected", String(i === at));
    const chosen = list.children[at];
    if (chosen) {
      field.setAttribute("aria-activedescendant", chosen.id);
      chosen.scrollIntoView({ block: "nearest" });
    } else {
      field.removeAttribute("aria-activedescendant");
    }
  }
  function go() {
    if (hits[at]) location.assign(hits[at].url);
  }
  function draw() {
    list.replaceChildren(...hits.map((hit, i) => {
      const item = document.createElement("li"), name = document.createElement("span"), what = document.createElement("span");
      item.id = "hit-" + i;
      item.setAttribute("role", "option");
      name.textContent = hit.name;
      what.className = "faint";
      what.textContent = hit.what + (hit.in ? " in " + hit.in : "");
      item.append(name, " ", what);
      item.addEventListener("click", () => { at = i; go(); });
      return item;
    }));
    status.textContent = hits.length === 0 ? "Nothing has that in its name." : hits.length === 1 ? "1 place" : hits.length + " places";
    choose(0);
  }
  async function ask() {
    const mine = ++asked, text = field.value;
    try {
      const answer = await fetch(location.origin + dialog.dataset.find + "?q=" + encodeURIComponent(text), { headers: { Accept: "application/json" } });
      const found = answer.ok ? await answer.json() : [];
      if (mine !== asked) return;
      hits = found;
      shown = text;
      draw();
    } catch {
      status.textContent = "The server does not answer.";
    }
  }
  function open() {
    field.value = "";
    dialog.showModal();
    field.focus();
    ask();
  }

  field.addEventListener("beforeinput", (e) => { if (e.data === "/" && field.value === "") e.preventDefault(); }); // the key that has opened it
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 80); });
  field.addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      choose(at + (e.key === "ArrowDown" ? 1 : -1));
    } else if (e.key === "Enter") {
      e.preventDefault();
      clearTimeout(timer);
      if (field.value === shown) {
        go();
      } else {
        ask().then(() => { if (field.value === shown) go(); }); // not to what was found for something else
      }
    }
  });
  dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); }); // beside it
  document.addEventListener("keydown", (e) => {
    const in_ = document.activeElement;
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || dialog.open || (in_ && /^(INPUT|SELECT|TEXTAREA)$/.test(in_.nodeName) && in_.type !== "range")) return;
    e.preventDefault();
    open();
  });
  button.addEventListener("click", open);
  button.hidden = false;
})();
