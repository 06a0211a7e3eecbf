// Draws the history as charts with uPlot, and gets new numbers when there are some. Times are UTC, or those of the clock here if somebody asks
// for that (times.js).
"use strict";
(() => {
  if (!window.uPlot) return;

  // What each chart shows: field, name, colour, whether the area below is filled, whether it counts messages.
  const kinds = {
    depth: [["depth", "Depth", "--bar", true], ["at_risk", "At risk", "--bad", true]],
    traffic: [["published", "Published", "--accent", false, true], ["delivered", "Delivered", "--good", false, true],
      ["expired", "Expired", "--warn", false, true], ["late", "Late", "--bad", false, true]],
    expiries: [["expired", "Expired", "--warn", false, true], ["late", "Late", "--bad", false, true]],
    lateness: [["lateness_p99_ms", "p99", "--warn", true]],
  };
  const marks = { alert: "--bad", alert_over: "--good", redis_lost: "--bad", redis_back: "--good", started: "--faint", policy: "--accent",
    change: "--accent", consumers_gone: "--warn", consumers_back: "--good", deploy: "--accent" };
  const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
  const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
  const times = document.getElementById("times");
  const local = () => times !== null && times.getAttribute("aria-pressed") === "true";
  const none = (v) => v === null || v === undefined;
  const two = (n) => String(n).padStart(2, "0");
  function clock(at, seconds) {
    const d = new Date(at * 1000);
    const text = local() ? [d.getHours(), d.getMinutes(), d.getSeconds()].map(two).join(":") : d.toISOString().slice(11, 19);
    return seconds ? text : text.slice(0, 5);
  }

  let root = null, charts = [], numbers = null, due = 0, asking = false;

  // What a colour of the style sheet is in the present scheme, as the canvas takes it.
  const probe = document.createElement("span");
  function colour(name, alpha) {
    probe.style.color = "var(" + name + ")";
    root.append(probe);
    const is = getComputedStyle(probe).color;
    probe.remove();
    return alpha === undefined ? is : is.replace("rgb(", "rgba(").replace(")", ", " + alpha + ")");
  }

  function options(kind, place) {
    const grid = { stroke: colour("--line"), width: 1 }, axis = { stroke: colour("--faint"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
    return {
      width: Math.max(place.clientWidth, 120), height: 170, padding: [8, 30, 0, 0],
      tzDate: (at) => (local() ? new Date(at * 1000) : uPlot.tzDate(new Date(at * 1000), "Etc/UTC")),
      cursor: { sync: { key: "history" }, drag: { x: false, y: false }, y: false },
      scales: { y: { range: (u, low, high) => [0, Math.max(high * 1.08, 1)] } },
      legend: { markers: { width: 0, fill: (u, i) => colour(kinds[kind][i - 1][2]) } },
      axes: [{ ...axis, size: 30, space: 56, values: (u, at) => at.map((t) => clock(t, at[1] - at[0] < 60)) }, { ...axis, size: 46, space: 32, values: (u, all) => all.map((v) => short.format(v)) }],
      series: [{ label: "At", value: (u, t, series, i) => (none(i) ? "latest" : clock(t, true) + (local() ? "" : " UTC")) }].concat(kinds[kind].map(([, label, name, fill]) => ({
        label, stroke: colour(name), width: 1.5, fill: fill ? colour(name, 0.18) : undefined, points: { size: 4 },
        value: (u, v, series, i) => { const is = none(i) ? u.data[series].findLast((one) => !none(one)) : v; return none(is) ? "–" : exact.format(is); },
      }))),
      hooks: { drawClear: [drawMarks], draw: kind === "lateness" ? [drawPins] : [] },
    };
  }

  // Marks are lines behind the curves.
  function drawMarks(u) {
    const c = u.ctx;
    c.save();
    c.lineWidth = devicePixelRatio;
    c.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const m of numbers.marks) {
      const x = Math.round(u.valToPos(m.at / 1000, "x", true));
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
      c.strokeStyle = colour(marks[m.kind] || "--faint");
      c.beginPath();
      c.moveTo(x, u.bbox.top);
      c.lineTo(x, u.bbox.top + u.bbox.height);
      c.stroke();
    }
    c.restore();
  }

  // At the top of the first chart each mark is a link. With the keyboard, those of the lists are used instead.
  function drawPins(u) {
    for (const old of u.over.querySelectorAll(".pin")) old.remove();
    for (const m of numbers.marks) {
      const x = u.valToPos(m.at / 1000, "x");
      if (x < 0 || x > u.over.clientWidth) continue;
      const pin = document.createElement("a");
      pin.className = "pin " + m.kind;
      pin.href = m.page;
      pin.tabIndex = -1;
      pin.title = clock(m.at / 1000, true) + " " + plain(m.text);
      pin.setAttribute("aria-label", pin.title);
      pin.style.left = x + "px";
      u.over.append(pin);
    }
  }

  // The slider: which time somebody looks at, and what changed near it.
  let chosen = null; // s; null: the present
  const plain = (text) => text.replace(/\p{C}/gu, "\ufffd");
  function near(at) {
    const most = 1000 * (numbers.expired.length * numbers.step) / 48;
    const found = numbers.marks.filter((m) => Math.abs(m.at - 1000 * at) <= most);
    if (found.length > 0) return found;
    return [numbers.marks.findLast((m) => m.at < 1000 * at), numbers.marks.find((m) => m.at > 1000 * at)].filter((m) => m !== undefined);
  }
  function line(m) {
    const item = document.createElement("li"), time = document.createElement("time"), link = document.createElement("a");
    item.className = "mark " + m.kind;
    time.textContent = new Date(m.at).toISOString().slice(11, 19);
    time.title = new Date(m.at).toISOString().replace("T", " ").replace("Z", " UTC");
    link.textContent = plain(m.text);
    link.href = m.page;
    item.append(time, " ", link);
    return item;
  }
  function show(form) {
    const when = chosen === null ? "now" : clock(chosen, true) + (local() ? " here" : " UTC"), found = chosen === null ? [] : near(chosen);
    form.querySelector("output").textContent = when;
    form.elements.at.setAttribute("aria-valuetext", chosen === null ? when : when + ", " + found.length + " changes");
    form.querySelector("ul").replaceChildren(...found.map(line));
    for (const c of charts) c.plot.setCursor({ left: chosen === null ? -10 : c.plot.valToPos(chosen, "x"), top: chosen === null ? -10 : 0 }, true, false);
  }
  function scrub(form, span) {
    const slider = form.elements.at;
    if (!form.dataset.ready) {
      form.dataset.ready = "1";
      chosen = slider.dataset.at ? Number(slider.dataset.at) : null;
      slider.addEventListener("input", () => { chosen = slider.value === slider.max ? null : Number(slider.value); show(form); });
      slider.addEventListener("keydown", (e) => { // an instant that the slider's last step stands for: no input event
        if ((e.key === "End" || e.key === "ArrowRight") && slider.value === slider.max) { chosen = null; show(form); }
      });
      form.addEventListener("submit", (e) => e.preventDefault());
      for (const button of form.querySelectorAll("button[data-by]")) {
        button.hidden = false;
        button.addEventListener("click", () => {
          const at = 1000 * (chosen === null ? Number(slider.max) : chosen), earlier = button.dataset.by === "-1";
          const next = earlier ? numbers.marks.findLast((m) => m.at < at) : numbers.marks.find((m) => m.at > at);
          if (!next) return;
          chosen = next.at / 1000;
          slider.value = String(chosen);
          show(form);
        });
      }
    }
    slider.min = span.min;
    slider.max = span.max;
    slider.step = numbers.step;
    slider.value = String(chosen === null ? span.max : chosen);
    if (!form.querySelector("ul").contains(document.activeElement)) show(form);
  }

  function data(kind) {
    const at = numbers.expired.map((_, i) => numbers.from + i * numbers.step);
    return [at].concat(kinds[kind].map(([field, , , , counts]) => numbers[field].map((v) => (v === null || !counts ? v : v / numbers.step))));
  }

  function draw() {
    // A young process fills the whole picture with what it knows.
    const first = Math.max(0, Math.min(numbers.expired.findIndex((v) => v !== null), numbers.expired.length - 6));
    const span = { min: numbers.from + first * numbers.step, max: numbers.from + (numbers.expired.length - 1) * numbers.step };
    for (const place of root.querySelectorAll("[data-plot]")) {
      const kind = place.dataset.plot, old = charts.find((c) => c.place === place);
      if (old) {
        old.plot.setData(data(kind), false);
        old.plot.setScale("x", span);
        continue;
      }
      const plot = new uPlot(options(kind, place), data(kind), place);
      plot.setScale("x", span);
      charts.push({ place, plot });
    }
    const form = root.querySelector(".scrub");
    if (form) scrub(form, span);
    root.dataset.drawn = String(charts.length);
  }

  function forget() {
    for (const c of charts) c.plot.destroy();
    charts = [];
  }
  function again() {
    if (!root || !numbers) return;
    forget();
    draw();
  }

  async function ask() {
    asking = true;
    try {
      const had = numbers && numbers.of === root.dataset.history ? numbers : null;
      const answer = await fetch(location.origin + root.dataset.history + (had ? "&marks=" + had.marks_version : ""), { headers: { Accept: "application/json" } });
      if (answer.ok) {
        const of = root.dataset.history, got = await answer.json(), same = had && got.marks_version === had.marks_version;
        const marks = ((same ? had.marks : got.marks) || []).filter((m) => m.at >= 1000 * got.from); // they are sent only when there are new ones
        numbers = { ...got, marks, of };
        due = Date.now() + 1000 * Math.max(2, numbers.step);
        draw();
      }
    } catch {
      due = Date.now() + 10000; // live.js shows that the server is away
    } finally {
      asking = false;
    }
  }

  function look() {
    const pause = document.getElementById("pause"), here = document.querySelector("[data-history]");
    if (here !== root) { // the page has replaced it
      forget();
      root = here;
      due = 0;
    }
    if (!root || asking || document.hidden || Date.now() < due) return;
    if (numbers && pause && pause.getAttribute("aria-pressed") === "true") return;
    due = Date.now() + 2000;
    ask();
  }

  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return; // a phone's address bar
    width = window.innerWidth;
    again();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  new MutationObserver(again).observe(document.documentElement, { attributes: true }); // the user chose a theme
  if (times) new MutationObserver(again).observe(times, { attributeFilter: ["aria-pressed"] });
  setInterval(look, 500);
  look();
})();
