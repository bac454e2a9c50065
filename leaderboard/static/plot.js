// Draws the picture of the front page by uPlot for any data set, size and figure, with intervals and the Pareto front.
// A mark shows its row under the pointer or by arrow keys, and links to it. Dragging zooms.
"use strict";

(function () {
  const place = document.querySelector(".plot");
  if (!place || typeof uPlot === "undefined") return;
  const { make, select, state, remember } = veil;
  const ACROSS = [
    ["guesswork", "Guesses until the first match", 1, true], ["reid-auc", "ReID AUC", -1, false],
    ["person-risk", "Worst person", -1, false], ["membership-auc", "Membership AUC", -1, false],
    ["member-risk", "Worst member", -1, false],
  ];
  const UP = ["utility-auc", "linear-probe-auc"];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const TINTS = { broken: "--bad", leaks: "--warn", "membership leaks": "--warn", "no leak above a bound": "--good", "no membership leak above a bound": "--good" };
  const has = (row, name) => row.figures[name] !== undefined && row.figures[name].value !== null;
  const ends = (figure) => [figure.value, figure.low, figure.high].filter((value) => value !== null);
  let chart = null;

  window.addEventListener("load", () => {
    const groups = new Map();
    for (const row of veil.rows) {
      if (!UP.some((name) => has(row, name))) continue;
      const key = [row.section, row.preset, row.seed].join("|");
      const list = groups.get(key);
      if (list) list.push(row);
      else groups.set(key, [row]);
    }
    if (!groups.size) return;
    const options = Array.from(groups, ([key, rows]) => [key, rows[0].data + ", " + rows[0].preset + ", seed " + rows[0].seed + " (" + rows.length + ")"]);
    options.sort((a, b) => a[1].localeCompare(b[1], "en", { numeric: true }));
    const first = groups.has(place.dataset.shown) ? place.dataset.shown : options[0][0];  // as without scripts
    const parameters = state();
    const choice = { data: groups.has(parameters.get("plot")) ? parameters.get("plot") : first, across: parameters.get("across") || "guesswork" };
    const bar = make("div", { class: "controls" });
    const box = make("div", { class: "chart", tabindex: "0", role: "application", "aria-label": "Utility against privacy; arrow keys walk along the marks, Enter follows one" });
    const description = make("p", { class: "told-mark", role: "status" });
    const note = make("p", { class: "caption" }, "Up and to the right is better for the data owner. Bars are 95 % intervals, the band is what chance gives, the line is the Pareto front of rows whose attacks are certified; rows that are not rated are left out. Drag to zoom, double-click to zoom out.");
    place.replaceChildren(bar, box, description, note);

    function draw() {
      const rows = groups.get(choice.data).filter((row) => !row.unrated);
      const across = ACROSS.filter(([name]) => rows.some((row) => has(row, name)));
      const [metric, title, better, log] = across.find(([name]) => name === choice.across) || across[0] || ACROSS[0];
      bar.replaceChildren(
        select("Data set and size", options, choice.data, (value) => { choice.data = value; remember({ plot: value }); draw(); }),
        select("Across", across.map(([name, text]) => [name, text]), metric, (value) => { choice.across = value; remember({ across: value }); draw(); }));
      const up = UP.find((name) => rows.some((row) => has(row, name) && has(row, metric)));
      const marks = up === undefined ? [] : rows.filter((row) => has(row, up) && has(row, metric)).map((row) => ({ row, x: row.figures[metric], y: row.figures[up], names: [up, metric] }));
      marks.sort((a, b) => a.x.value - b.x.value || a.y.value - b.y.value);
      if (chart) chart.destroy();
      description.textContent = marks.length ? "" : "No row has both figures here.";
      box.replaceChildren();
      if (marks.length) chart = plot(box, description, marks, title, better, log);
      else chart = null;
    }
    draw();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    let width = box.clientWidth;
    new ResizeObserver(() => { if (box.clientWidth !== width && chart) { width = box.clientWidth; chart.setSize({ width, height: tall(width) }); } }).observe(box);
  });

  const tall = (width) => Math.max(300, Math.min(520, Math.round(width * 0.5)));

  function front(marks, better) {
    const candidates = marks.filter((mark) => !mark.row.reference && mark.row.trusted && mark.x.certified).sort((a, b) => b.y.value - a.y.value || better * (b.x.value - a.x.value));
    const front = [];
    for (const mark of candidates) if (!front.length || better * (mark.x.value - front[front.length - 1].x.value) > 0) front.push(mark);
    return front;
  }

  function plot(box, description, marks, title, better, log) {
    const least = log ? 0.5 : -Infinity;
    const values = (which) => marks.flatMap((mark) => ends(mark[which]));
    const range = (ends, logarithmic) => {
      const low = Math.max(Math.min(...ends), logarithmic ? least : -Infinity), high = Math.max(...ends);
      if (logarithmic) return [low / 1.4, high * 1.6];
      const room = (high - low || Math.abs(high) || 1) * 0.08;
      return [low - room, high + room];
    };
    const xs = range([...values("x"), ...marks.map((mark) => mark.x.null).filter((value) => value !== null)], log), ys = range(values("y"), false);
    let current = -1;
    const edge = front(marks, better);

    function paint(u) {
      const context = u.ctx, ratio = devicePixelRatio;
      const at = (mark) => [u.valToPos(mark.x.value, "x", true), u.valToPos(mark.y.value, "y", true)];
      context.save();
      context.beginPath();
      context.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      context.clip();
      const nulls = marks.map((mark) => mark.x.null).filter((value) => value !== null);
      if (nulls.length) {
        const ends = [Math.min(...nulls), Math.max(...nulls)].map((value) => u.valToPos(value, "x", true)).sort((a, b) => a - b);
        context.fillStyle = colour("--chance");
        context.globalAlpha = 0.16;
        context.fillRect(ends[0] - 2 * ratio, u.bbox.top, ends[1] - ends[0] + 4 * ratio, u.bbox.height);
        context.globalAlpha = 1;
        context.font = 11 * ratio + "px system-ui, sans-serif";
        context.textAlign = "center";
        context.fillText("chance", (ends[0] + ends[1]) / 2, u.bbox.top + 12 * ratio);
      }
      context.lineWidth = 1.2 * ratio;
      context.strokeStyle = colour("--strong");
      context.setLineDash([5 * ratio, 4 * ratio]);
      context.beginPath();
      edge.forEach((mark, index) => context[index ? "lineTo" : "moveTo"](...at(mark)));
      context.stroke();
      context.setLineDash([]);
      marks.forEach((mark, index) => {
        const [x, y] = at(mark);
        const tint = mark.row.reference ? colour("--quiet") : colour((TINTS[mark.row.verdict] !== "--good" || mark.row.complete) && TINTS[mark.row.verdict] || "--quiet");
        context.strokeStyle = tint;
        context.globalAlpha = index === current ? 1 : 0.55;
        context.lineWidth = (index === current ? 2 : 1) * ratio;
        context.beginPath();
        if (mark.x.low !== null && mark.x.high !== null) {
          context.moveTo(u.valToPos(Math.max(mark.x.low, least), "x", true), y);
          context.lineTo(u.valToPos(mark.x.high, "x", true), y);
        }
        if (mark.y.low !== null && mark.y.high !== null) {
          context.moveTo(x, u.valToPos(mark.y.low, "y", true));
          context.lineTo(x, u.valToPos(mark.y.high, "y", true));
        }
        context.stroke();
        context.globalAlpha = 1;
        shape(context, mark.row, x, y, (index === current ? 7 : 5) * ratio, tint, ratio);
      });
      names(context, u, at, ratio);
      context.restore();
    }

    function names(context, u, at, ratio) {
      const occupied = marks.map((mark) => { const [x, y] = at(mark); return [x - 6 * ratio, y - 6 * ratio, x + 6 * ratio, y + 6 * ratio]; });
      context.font = 11.5 * ratio + "px system-ui, sans-serif";
      context.fillStyle = colour("--ink");
      context.textAlign = "left";
      context.textBaseline = "middle";
      for (const mark of marks) {
        const [x, y] = at(mark);
        const words = (mark.row.plugin + " " + mark.row.variant).trim();
        const text = words.length > 30 ? words.slice(0, 29) + "…" : words;
        const wide = context.measureText(text).width, high = 13 * ratio;
        for (const [dx, dy] of [[7, -9], [7, 11], [-7, -9], [-7, 11], [9, 0], [-9, 0], [7, -23], [7, 25], [-7, -23]]) {
          const left = x + dx * ratio - (dx < 0 ? wide : dx ? 0 : wide / 2), top = y + dy * ratio - high / 2;
          const spot = [left, top, left + wide, top + high];
          const inside = spot[0] >= u.bbox.left && spot[2] <= u.bbox.left + u.bbox.width && spot[1] >= u.bbox.top && spot[3] <= u.bbox.top + u.bbox.height;
          if (inside && !occupied.some((other) => spot[0] < other[2] && other[0] < spot[2] && spot[1] < other[3] && other[1] < spot[3])) {
            occupied.push(spot);
            context.fillText(text, left, y + dy * ratio);
            break;
          }
        }
      }
    }

    function say(index) {
      current = index;
      const mark = marks[index];
      description.replaceChildren();
      if (mark) {
        const [up, across] = mark.names.map((name) => (value) => veil.number(value, veil.digits(name)));
        const print = (figure, text) => text(figure.value) + (figure.low === null ? "" : " (" + text(figure.low) + " to " + text(figure.high) + ")");
        description.append(veil.link(mark.row), " " + mark.row.variant + (mark.row.reference ? " (reference: it " + mark.row.reference + ")" : "") + " ", veil.verdict(mark.row), ": utility " + print(mark.y, up) + ", " + title.toLowerCase() + " " + print(mark.x, across));
      }
      if (chart) chart.redraw(false);
    }

    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
    const titles = [title + (log ? ", log scale" : "") + "; better to the right →", title + "; better →", title];
    const across = (u) => titles.find((text) => u.ctx.measureText(text).width <= u.bbox.width) || title;
    const width = box.clientWidth || 600;
    let chart = null;
    chart = new uPlot({
      width, height: tall(width), legend: { show: false },
      cursor: { points: { show: false }, drag: { x: true, y: true, uni: 20 } },
      scales: { x: { time: false, distr: log ? 3 : 1, dir: better, range: (u, low, high) => (u.zoomed && low !== null && high > low ? [low, high] : xs) }, y: { range: (u, low, high) => (u.zoomed && low !== null && high > low ? [low, high] : ys) } },
      axes: [
        { ...axis, label: across, filter: log ? (u, splits) => splits.map((value) => (Math.abs(Math.log10(value) % 1) < 1e-9 ? value : null)) : undefined, values: log ? (u, splits) => splits.map((value) => (value === null ? "" : veil.number(value))) : undefined },
        { ...axis, label: "Utility; better upwards →", size: 56 },
      ],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      hooks: {
        draw: [paint],
        setSelect: [(u) => { u.zoomed = u.select.width > 0 || u.select.height > 0; }],
      },
    }, [marks.map((mark) => mark.x.value), marks.map((mark) => mark.y.value)], box);
    chart.over.addEventListener("dblclick", () => { chart.zoomed = false; chart.setScale("x", { min: xs[0], max: xs[1] }); chart.setScale("y", { min: ys[0], max: ys[1] }); });
    const near = (event) => {
      const spot = chart.over.getBoundingClientRect();
      let best = -1, least = 24 ** 2;
      marks.forEach((mark, index) => {
        const dx = chart.valToPos(mark.x.value, "x") - (event.clientX - spot.left), dy = chart.valToPos(mark.y.value, "y") - (event.clientY - spot.top);
        if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = index; }
      });
      return best;
    };
    chart.over.addEventListener("mousemove", (event) => {
      const best = near(event);
      if (best >= 0 && best !== current) say(best);
    });
    let before = -1;  // a finger's first tap tells what a mark is, its second follows it
    chart.over.addEventListener("pointerdown", (event) => { before = event.pointerType === "touch" ? current : near(event); });
    const follow = () => { if (current >= 0) window.location.href = veil.root + "cells/" + marks[current].row.id + ".html"; };
    chart.over.addEventListener("click", (event) => { if (current >= 0 && near(event) === current && before === current && !chart.select.width) follow(); });
    box.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (step) { say((current + step + marks.length) % marks.length); event.preventDefault(); }
      if (event.key === "Enter" && event.target === box) follow();
    };
    return chart;
  }

  // Shapes beside colours: a cross is broken, a diamond leaks, a triangle is a leak of membership, a ring a bound (two rings one on members), a square no verdict.
  function shape(context, row, x, y, size, tint, ratio) {
    context.strokeStyle = tint;
    context.fillStyle = colour("--ground");
    context.lineWidth = 2 * ratio;
    context.beginPath();
    if (row.verdict === "broken" && !row.reference) {
      context.moveTo(x - size, y - size); context.lineTo(x + size, y + size);
      context.moveTo(x + size, y - size); context.lineTo(x - size, y + size);
    } else if (row.verdict === "leaks" && !row.reference) {
      context.moveTo(x, y - size); context.lineTo(x + size, y); context.lineTo(x, y + size); context.lineTo(x - size, y); context.closePath();
      context.fill();
    } else if (row.verdict === "membership leaks" && !row.reference) {
      context.moveTo(x, y - size); context.lineTo(x + size, y + size * 0.7); context.lineTo(x - size, y + size * 0.7); context.closePath();
      context.fill();
    } else if ((row.verdict === "no leak above a bound" || row.verdict === "no membership leak above a bound") && !row.reference) {
      context.arc(x, y, size, 0, 2 * Math.PI);
      context.fill();
      if (row.verdict === "no membership leak above a bound") { context.moveTo(x + size * 0.4, y); context.arc(x, y, size * 0.4, 0, 2 * Math.PI); }
    } else {
      context.rect(x - size * 0.8, y - size * 0.8, size * 1.6, size * 1.6);
      context.fill();
    }
    context.stroke();
  }
})();
