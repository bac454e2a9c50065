// Sorting, filters, search, hidden columns and opened rows of the tables with a row a line; their state is in the
// address. Without this script the tables are complete, only fixed in order.
"use strict";

// A board in several pages is joined first, from the scripts that hold the rows of the others.
(function () {
  // Addresses of rows and of what was asked for led to the front page before every row had a page of its own.
  const { moved } = document.body.dataset, { search, hash } = window.location;
  if (moved && (search || (hash && !document.getElementById(hash.slice(1))))) { window.location.replace(moved + search + hash); return; }
  const paged = document.querySelector(".paged");
  if (!paged) { begin(); return; }
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelector("#board tbody").append(...veil.further.map(veil.built));
    paged.remove();
    begin();
  });
})();

function begin() {
  const tables = Array.from(document.querySelectorAll("table.lines"));
  if (!tables.length) return;
  const FILTERS = tables[0].dataset.choices.split(",").map((choice) => choice.split("="));
  const USUALLY_HIDDEN = tables[0].dataset.hidden.split(",").filter(Boolean);
  const { make, state, remember, among, select } = veil;
  const first = state();
  const wanted = { q: first.get("q") || "" };
  const open = new Set((first.get("open") || "").split(",").filter(Boolean));
  // On a phone a row shows less until it is opened, or until somebody asks for more columns.
  const narrow = window.matchMedia("(max-width: 44rem)");
  let hidden = first.has("hide") ? new Set(first.get("hide").split(",").filter(Boolean)) : null;  // null: as is usual
  let order = first.get("sort") || "";
  // Of long tables only the first rows stand in the page, for laying out a thousand takes longer than sorting them.
  // Paper has all.
  const FEW = 100;
  let all = first.has("all") || Boolean(window.location.hash) || open.size > 0;

  const heads = (table) => Array.from(table.tHead.rows[0].cells);
  const lines = new Map(tables.map((table) => [table, Array.from(table.tBodies[0].rows)]));  // in the order shown
  const every = tables.flatMap((table) => lines.get(table));
  FILTERS.forEach(([name]) => { wanted[name] = among(first.get(name), every.map((row) => row.dataset[name])); });
  const places = new Map(every.map((row, place) => [row, place]));
  const opened = new Map();  // what a row was opened to
  const texts = new Map(every.map((row) => [row, row.textContent.toLowerCase()]));
  const titles = new Map(every.map((row) => [row, row.querySelector(".c-dataset")?.textContent || ""]));

  // Rows without a figure come last in both directions; equal rows keep their order.
  function sort(table, name, direction) {
    const column = heads(table).findIndex((head) => head.dataset.c === name);
    if (column < 0) return;
    const sign = direction === "up" ? 1 : -1;
    const keyed = lines.get(table).map((row) => {
      const place = places.get(row);
      const text = row.cells[column].dataset.s;
      const value = text === undefined || text === "" ? null : Number(text);
      return { row, place, text: text || "", value: Number.isNaN(value) ? null : value, none: text === undefined || text === "" };
    });
    const plain = keyed.some((one) => !one.none && one.value === null);
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    keyed.sort((a, b) => {
      if (a.none || b.none) return a.none - b.none || a.place - b.place;
      return sign * (plain ? compare(a.text, b.text) : a.value === b.value ? 0 : a.value < b.value ? -1 : 1) || a.place - b.place;
    });
    lines.set(table, keyed.map(({ row }) => row));
    for (const { row } of keyed) {
      for (const cell of row.querySelectorAll(".sorted")) cell.classList.remove("sorted");
      row.cells[column].classList.add("sorted");
    }
    heads(table).forEach((head, index) => {
      if (index === column) head.setAttribute("aria-sort", direction === "up" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  }
  function render(whole = all) {
    let left = 0;
    for (const table of tables) {
      const fit = lines.get(table).filter((row) => !row.hidden);
      const shown = whole ? fit : fit.slice(0, FEW);
      left += fit.length - shown.length;
      nothing.get(table).hidden = fit.length > 0;
      table.tBodies[0].replaceChildren(...shown.flatMap((row) => (opened.has(row) ? [row, opened.get(row)] : [row])));
    }
    rest.hidden = left === 0;
    rest.textContent = "Show " + left + " more rows";
  }
  window.addEventListener("beforeprint", () => render(true));
  window.addEventListener("afterprint", () => render());
  function reorder(name, direction) {
    order = (direction === "down" ? "-" : "") + name;
    tables.forEach((table) => sort(table, name, direction));
    render();
    remember({ sort: order });
    if (sorter) sorter.value = order;
  }

  function filter() {
    let shown = 0;
    const words = wanted.q.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of every) {
      const fits = FILTERS.every(([name]) => !wanted[name] || row.dataset[name] === wanted[name]) && words.every((word) => texts.get(row).includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    const asked = wanted.q.trim() || FILTERS.some(([name]) => wanted[name]);
    for (const fold of document.querySelectorAll("details.idle")) {
      const found = lines.get(fold.querySelector("table")).some((row) => !row.hidden);
      fold.hidden = !found;
      if (asked && found) fold.open = true;
    }
    render();
    said.textContent = shown === every.length ? every.length + " rows" : shown + " of " + every.length + " rows";
    remember({ q: wanted.q, ...Object.fromEntries(FILTERS.map(([name]) => [name, wanted[name]])) });
  }

  function usual() {
    const aside = narrow.matches ? heads(tables[0]).filter((head) => head.classList.contains("aside")) : [];
    return new Set([...USUALLY_HIDDEN, ...aside.map((head) => head.dataset.c)]);
  }
  function hide() {
    const brief = usual();
    if (hidden && hidden.size === brief.size && Array.from(hidden).every((name) => brief.has(name))) hidden = null;
    const left = hidden || new Set(USUALLY_HIDDEN);
    for (const table of tables) {
      heads(table).forEach((head, index) => {
        const off = left.has(head.dataset.c);
        head.classList.toggle("off", off);
        lines.get(table).forEach((row) => row.cells[index].classList.toggle("off", off));
      });
      table.classList.toggle("brief", hidden === null);
    }
    for (const [name, tick] of ticks) tick.checked = !(hidden || brief).has(name);
    remember({ hide: hidden ? Array.from(hidden).join(",") || "none" : "" });
  }
  const ticks = new Map();
  narrow.addEventListener("change", hide);

  function fact({ column, figure }) {
    const chance = figure.null === null ? "" : veil.number(figure.null, column.digits) + (figure.null_low === null || figure.null_high === null ? "" : " (" + veil.interval(figure.null_low, figure.null_high, column.digits) + ")");
    const extra = [chance && "chance " + chance, figure.attacked && "by " + veil.by(figure), ...veil.marks(figure)].filter(Boolean);
    return make("div", {}, make("dt", {}, veil.heading(column)),
      make("dd", {}, make("span", { class: "value" }, veil.number(figure.value, column.digits)), " ", make("span", { class: "interval" }, veil.interval(figure.low, figure.high, column.digits)),
        extra.length ? make("span", { class: "extra" }, extra.join(" · ")) : null));
  }
  function details(row) {
    if (row === null) return [make("p", {}, "The figures of this row could not be loaded; its page holds them.")];
    const groups = new Map();
    veil.shown(row).forEach((one) => groups.set(one.column.group, [...(groups.get(one.column.group) || []), one]));
    const sections = Array.from(groups, ([group, some]) => make("section", {}, make("h3", {}, group), make("dl", {}, some.map(fact))));
    const reasons = row.reasons.map(([status, names, why]) => make("li", {}, status + ": " + names + ": " + why));
    return [
      make("p", { class: "said" }, make("b", { "aria-hidden": "true" }, row.sign), " ", row.sentence),
      row.caveat ? make("p", { class: "notes" }, row.caveat) : null,
      row.unrated ? make("p", {}, "Not rated: " + row.unrated) : null,
      row.audit ? make("p", {}, "Audit: " + row.audit) : null,
      make("div", { class: "facts" }, sections),
      reasons.length ? make("details", {}, make("summary", {}, reasons.length + (reasons.length === 1 ? " reason" : " reasons") + " for places without a figure"), make("ul", {}, reasons)) : null,
      make("p", { class: "links" }, make("a", { href: veil.root + "cells/" + row.id + ".html" }, "Records, environment, command"),
        make("a", { href: veil.root + "compare.html?rows=" + row.id }, "Compare with another row"),
        make("a", { href: "#" + row.id }, "Link to this row")),
    ].filter(Boolean);
  }
  function toggle(row, button, show) {
    button.setAttribute("aria-expanded", String(show));
    opened.get(row)?.remove();
    opened.delete(row);
    if (show) {
      const fold = row.closest("details");
      if (fold) fold.open = true;
      const place = make("td", { colspan: row.cells.length }, "…");
      const more = make("tr", { class: "more", id: row.id + "-more" }, place);
      opened.set(row, more);
      row.after(more);
      veil.load(row.id, (found) => place.replaceChildren(...details(found)));
      open.add(row.id);
    } else open.delete(row.id);
    remember({ open: Array.from(open).join(",") });
  }

  function clear() {
    return make("a", { href: window.location.pathname.split("/").pop() || "board.html" }, "Clear");
  }
  const said = make("span", { class: "count", role: "status" });
  const rest = make("button", { type: "button", class: "rest", hidden: true });
  rest.addEventListener("click", () => { all = true; remember({ all: "yes" }); render(); });
  const nothing = new Map(tables.map((table) => [table, make("p", { class: "empty", hidden: true }, "No row fits what is asked for. ", clear())]));
  let sorter = null;
  function prepare() {
    const bar = make("div", { class: "controls" });
    const find = make("input", { type: "search", value: wanted.q });
    find.addEventListener("input", () => { wanted.q = find.value; filter(); });
    bar.append(make("label", {}, "Find ", find));
    for (const [name, label] of FILTERS) {
      const values = new Map(every.map((row) => [row.dataset[name], name === "dataset" ? titles.get(row) || row.dataset.dataset : row.dataset[name]]));
      if (values.size < 2) continue;
      const sorted = Array.from(values).sort((a, b) => a[1].localeCompare(b[1], "en", { numeric: true }));
      bar.append(select(label, [["", "all"], ...sorted], wanted[name], (value) => { wanted[name] = value; filter(); }));
    }
    const columns = heads(tables[0]).filter((head) => head.dataset.c !== "method");
    const names = columns.map((head) => [head.dataset.c, head.textContent.trim()]);
    const orders = [["", "as given"], ...heads(tables[0]).flatMap((head) => {
      const text = names.find(([name]) => name === head.dataset.c)?.[1] || "Method";
      const both = [[head.dataset.c, text + ", ascending"], ["-" + head.dataset.c, text + ", descending"]];
      return head.dataset.first === "down" ? both.reverse() : both;
    })];
    const box = select("Sort", orders, order, (value) => {
      if (value) reorder(value.replace(/^-/, ""), value.startsWith("-") ? "down" : "up");
      else { remember({ sort: "" }); window.location.reload(); }
    });
    sorter = box.querySelector("select");
    bar.append(box);
    const boxes = names.map(([name, text]) => {
      const tick = make("input", { type: "checkbox" });
      ticks.set(name, tick);
      tick.addEventListener("change", () => { hidden ||= usual(); if (tick.checked) hidden.delete(name); else hidden.add(name); hide(); });
      return make("label", {}, tick, " " + text);
    });
    bar.append(make("details", { class: "columns" }, make("summary", {}, "Columns"), make("div", {}, boxes)));
    bar.append(clear(), said);
    const folded = make("details", { class: "filters", open: !narrow.matches || Boolean(window.location.search) }, make("summary", {}, "Filter, sort, columns"), bar);
    tables[0].closest(".scroll").before(folded);
    tables[0].closest(".scroll").after(rest);
    for (const [table, note] of nothing) table.closest(".scroll").after(note);

    tables.forEach((table) => {
      heads(table).forEach((head) => {
        const button = make("button", { type: "button" });
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => {
          const up = head.getAttribute("aria-sort");
          const next = up === null ? head.dataset.first : up === "ascending" ? "down" : "up";
          reorder(head.dataset.c, next);
        });
      });
      table.classList.add("opening");
    });
    tables.forEach((table) => heads(table).forEach((head, index) => lines.get(table).forEach((row) => { row.cells[index].dataset.label = names.find(([name]) => name === head.dataset.c)?.[1] || ""; })));
    every.forEach((row) => {
      const button = make("button", { type: "button", class: "opener", "aria-expanded": "false", "aria-label": "Details of " + row.cells[0].textContent.trim().replace(/\s+/g, " ") });
      row.cells[0].prepend(button);
      row.classList.add("openable");
    });
    document.addEventListener("click", (event) => {
      const place = event.target.closest?.("button.opener") || (narrow.matches && !event.target.closest?.("a") && event.target.closest?.("tr.openable"));
      const button = place && (place.querySelector(".opener") || place);
      if (button) toggle(button.closest("tr"), button, button.getAttribute("aria-expanded") !== "true");
    });
  }

  prepare();
  hide();
  filter();
  if (order) reorder(order.replace(/^-/, ""), order.startsWith("-") ? "down" : "up");
  Array.from(open).forEach((id) => {
    const row = every.find((each) => each.id === id);
    const button = row && row.querySelector("button.opener");
    if (button) toggle(row, button, true);
    else open.delete(id);
  });
}
