// The arrow keys, Home and End lead from one cell of the grid of queues to another.
"use strict";
document.addEventListener("keydown", (e) => {
  const at = e.target.closest(".cells > a");
  if (!at || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
  const cells = Array.from(at.parentNode.children), here = cells.indexOf(at);
  const row = cells.filter((c) => c.offsetTop === cells[0].offsetTop).length;
  const to = { ArrowLeft: here - 1, ArrowRight: here + 1, ArrowUp: here - row, ArrowDown: here + row, Home: 0, End: cells.length - 1 }[e.key];
  if (to === undefined || !cells[to]) return;
  e.preventDefault();
  cells[to].focus();
});
