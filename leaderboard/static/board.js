// Sorting and filtering of the board's tables. Without this script the pages are complete, only fixed in order.
"use strict";

(function () {
  const number = (cell) => (cell.dataset.sort === undefined ? null : Number(cell.dataset.sort));

  function overlap(a, b) {
    if (a.dataset.low === undefined || b.dataset.low === undefined) return false;
    return Number(a.dataset.low) <= Number(b.dataset.high) && Number(b.dataset.low) <= Number(a.dataset.high);
  }

  // Mark every visible row whose interval overlaps that of the row above: their order is not established.
  function mark(table, column) {
    table.querySelectorAll(".tie").forEach((sign) => sign.remove());
    if (column < 1) return;
    let above = null;
    for (const row of table.tBodies[0].rows) {
      if (row.hidden) continue;
      const cell = row.cells[column];
      if (cell.dataset.sort === undefined) break;
      if (above && overlap(above, cell)) {
        const sign = document.createElement("span");
        sign.className = "tie";
        sign.textContent = "≈ ";
        sign.title = "The interval overlaps that of the row above: their order is not established";
        cell.prepend(sign);
      }
      above = cell;
    }
  }

  // Rows without a figure come last in both directions; equal rows keep the order of their names.
  function sort(table, column, direction) {
    const sign = direction === "ascending" ? 1 : -1;
    const name = (row) => row.cells[0].dataset.sort;
    const rows = Array.from(table.tBodies[0].rows);
    rows.sort((a, b) => {
      const byName = name(a).localeCompare(name(b), "en", { numeric: true });
      if (column === 0) return sign * byName;
      const x = number(a.cells[column]);
      const y = number(b.cells[column]);
      if (x === null || y === null) return (x === null) - (y === null) || byName;
      return x === y ? byName : sign * (x < y ? -1 : 1);
    });
    table.tBodies[0].append(...rows);
    heads(table).forEach((head, index) => {
      if (index === column) head.setAttribute("aria-sort", direction);
      else head.removeAttribute("aria-sort");
    });
    mark(table, column);
  }

  const heads = (table) => Array.from(table.tHead.querySelector(".titles").cells);

  function select(label, options, onchange) {
    const box = document.createElement("label");
    const list = document.createElement("select");
    box.append(label + " ", list);
    for (const [value, text] of options) list.add(new Option(text, value));
    list.addEventListener("change", () => onchange(list.value));
    return [box, list];
  }

  function prepare(table) {
    const wanted = { text: "", preset: "", seed: "" };
    const rows = Array.from(table.tBodies[0].rows);
    const said = document.createElement("span");
    const bar = document.createElement("div");
    bar.className = "controls";
    said.className = "said";
    said.setAttribute("role", "status");

    function current() {
      return heads(table).findIndex((head) => head.hasAttribute("aria-sort"));
    }
    function filter() {
      let shown = 0;
      for (const row of rows) {
        const text = row.cells[0].textContent.toLowerCase();
        row.hidden = !(
          text.includes(wanted.text) &&
          (!wanted.preset || row.dataset.preset === wanted.preset) &&
          (!wanted.seed || row.dataset.seed === wanted.seed)
        );
        shown += !row.hidden;
      }
      said.textContent = shown === rows.length ? "" : shown + " of " + rows.length + " rows";
      mark(table, current());
    }

    heads(table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const first = head.dataset.direction;
        const other = first === "ascending" ? "descending" : "ascending";
        sort(table, column, head.getAttribute("aria-sort") === first ? other : first);
        order.value = String(column);
      });
    });

    if (rows.length > 1) {
      const find = document.createElement("input");
      const label = document.createElement("label");
      find.type = "search";
      find.addEventListener("input", () => { wanted.text = find.value.trim().toLowerCase(); filter(); });
      label.append("Find ", find);
      bar.append(label);
      for (const what of ["preset", "seed"]) {
        const values = Array.from(new Set(rows.map((row) => row.dataset[what]))).sort();
        if (values.length < 2) continue;
        const options = [["", "all"], ...values.map((value) => [value, value])];
        bar.append(select(what[0].toUpperCase() + what.slice(1), options, (value) => { wanted[what] = value; filter(); })[0]);
      }
    }
    const titles = heads(table).map((head, column) => {
      const copy = head.cloneNode(true);
      copy.querySelectorAll(".hidden").forEach((part) => part.remove());
      return [String(column), copy.textContent.trim()];
    });
    const [box, order] = select("Sort by", titles, (value) => {
      sort(table, Number(value), heads(table)[Number(value)].dataset.direction);
    });
    if (rows.length > 1) bar.append(box, said);
    if (bar.childNodes.length) table.parentElement.before(bar);

    const column = current();
    order.value = String(Math.max(column, 0));
    if (column > 0) mark(table, column);
  }

  document.querySelectorAll("table.board[id]").forEach(prepare);
})();
