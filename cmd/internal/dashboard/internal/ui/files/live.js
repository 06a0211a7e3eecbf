// Follows the live part of a page by server-sent events, and merges it into the page.
"use strict";
(() => {
  const live = document.getElementById("live");
  const button = document.getElementById("pause");
  if (!live || !live.dataset.live || !button || !window.EventSource) return;

  let source = null, paused = false, held = null, again = 0;

  // Merges the children of one node into those of another. What has not changed stays the
  // same node, so that focus, selection and unfolded details survive.
  function merge(into, from) {
    const fresh = Array.from(from.childNodes);
    for (let i = 0; i < fresh.length; i++) {
      const now = into.childNodes[i];
      if (!now) {
        into.appendChild(document.importNode(fresh[i], true));
      } else if (now.nodeType !== fresh[i].nodeType || now.nodeName !== fresh[i].nodeName) {
        now.replaceWith(document.importNode(fresh[i], true));
      } else if (now.nodeType === Node.ELEMENT_NODE && now.dataset.keep !== undefined && now.dataset.keep === fresh[i].dataset.keep) {
        continue; // another script draws there
      } else if (now.nodeType === Node.ELEMENT_NODE) {
        attributes(now, fresh[i]);
        merge(now, fresh[i]);
      } else if (now.nodeValue !== fresh[i].nodeValue) {
        now.nodeValue = fresh[i].nodeValue;
      }
    }
    while (into.childNodes.length > fresh.length) into.lastChild.remove();
  }
  function attributes(now, fresh) {
    for (const a of Array.from(fresh.attributes)) if (now.getAttribute(a.name) !== a.value) now.setAttribute(a.name, a.value);
    for (const a of Array.from(now.attributes)) if (!fresh.hasAttribute(a.name) && a.name !== "open") now.removeAttribute(a.name);
  }

  // Whether the user is busy in the live part: has selected text in it, or fills in a form.
  function busy() {
    const marked = window.getSelection();
    if (marked && !marked.isCollapsed && live.contains(marked.anchorNode)) return true;
    const at = document.activeElement;
    if (at.nodeName === "BUTTON" && at.form && at.form.querySelector("input:not([type=hidden]), select, textarea")) return live.contains(at); // of what was filled in
    return live.contains(at) && /^(INPUT|SELECT|TEXTAREA)$/.test(at.nodeName) && at.type !== "range"; // what has sliders is kept
  }
  function show() {
    if (held === null || paused || busy()) return;
    const parsed = new DOMParser().parseFromString("<div>" + held + "</div>", "text/html"); // runs nothing
    held = null;
    merge(live, parsed.body.firstChild);
  }
  function state(text, stale) {
    button.textContent = text;
    live.dataset.state = stale ? "stale" : "live";
  }
  function open() {
    source = new EventSource(live.dataset.live);
    source.onopen = () => state("Pause updates", false);
    source.onmessage = (e) => { held = JSON.parse(e.data); show(); };
    source.addEventListener("over", () => { source.close(); location.reload(); });
    source.onerror = () => {
      state("Reconnecting…", true);
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again
      clearTimeout(again);
      again = setTimeout(open, 15000);
    };
  }
  function close() { clearTimeout(again); if (source) source.close(); source = null; }

  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    if (paused) {
      close();
      state("Updates paused", false);
    } else {
      state("Pause updates", false);
      open();
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
    } else if (!paused && !source) {
      open();
    }
  });
  document.addEventListener("selectionchange", show);
  document.addEventListener("focusout", () => setTimeout(show, 0));
  window.addEventListener("pagehide", close);
  button.hidden = false;
  open();
})();
