// Shared by the scripts of all pages: schema and rows, which come as scripts because pages opened from a disk may load
// nothing else; the state in the address; and a way to make elements out of text, never out of markup.
"use strict";

const veil = (function () {
  const rows = [];
  const titles = {};  // of data sets, by their names in addresses
  const columns = {};  // metrics, by name
  const fields = [];  // of a row, in order
  const waiting = {};
  const known = {};
  const root = document.body.dataset.root;

  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, String(value));
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
  }

  // The state in the address: replaced, so that going back leaves the page.
  function state() {
    return new URLSearchParams(window.location.search);
  }
  function remember(changes) {
    const now = state();
    for (const [name, value] of Object.entries(changes)) {
      if (value) now.set(name, value);
      else now.delete(name);
    }
    const text = now.toString();
    try {
      window.history.replaceState(null, "", (text ? "?" + text : window.location.pathname) + window.location.hash);
    } catch (error) { /* a browser that keeps addresses of files as they are */ }
  }

  // The value in an address if it is a known one, else empty, as the control beside it shows.
  function among(value, known) {
    return Array.from(known).includes(value) ? value : "";
  }
  function select(label, options, value, onchange) {
    const list = make("select", {}, options.map(([key, text]) => make("option", { value: key, selected: key === value }, text)));
    list.addEventListener("change", () => onchange(list.value));
    return make("label", {}, label + " ", list);
  }

  // The same schema and rows as in api/index.json and api/rows; what is left out of a row or figure has its default.
  function schema(known) {
    fields.push(...known.fields);
    known.columns.forEach((column, order) => { columns[column.name] = { ...column, order }; });
  }
  function complete(row) {
    const figure = { value: null, low: null, high: null, null: null, null_low: null, null_high: null, by: "", attacked: false, certified: true, chance: null, beyond: null, unrated: "", gaps: [] };
    const figures = Object.fromEntries(Object.entries(row.figures).map(([name, one]) => [name, { ...figure, ...one }]));
    return { caveat: "", audit: "", cost: "", reasons: [], tests: {}, claim: null, ...row, figures };
  }
  function add(some) {
    rows.push(...some.map(complete));
    some.forEach((row) => { titles[row.section] = row.data; });
  }
  // Rows of a board that is too long for one page, as plain data: [name, attributes, children ...].
  const further = [];
  function more(some) {
    further.push(...some);
  }
  function built(node) {
    return typeof node === "string" ? node : make(node[0], node[1], node.slice(2).map(built));
  }
  function row(data) {
    known[data.id] = complete(data);
    (waiting[data.id] || []).forEach((tell) => tell(known[data.id]));
    delete waiting[data.id];
  }
  // Hand a row with all of its figures to `tell`; null if there is no row of that name.
  function load(id, tell) {
    if (!/^[a-z0-9-]+$/.test(id)) return tell(null);
    if (known[id]) return tell(known[id]);
    if (waiting[id]) return waiting[id].push(tell);
    waiting[id] = [tell];
    const script = make("script", { src: root + "rows/" + id + ".js" });
    script.addEventListener("error", () => {
      (waiting[id] || []).forEach((each) => each(null));
      delete waiting[id];
    });
    document.head.append(script);
    return undefined;
  }
  function verdict(row) {
    return make("span", { class: "verdict " + row.verdict.replaceAll(" ", "-") + (row.complete ? "" : " part") }, make("b", { "aria-hidden": "true" }, row.sign), " " + row.label);
  }
  function link(row) {
    return make("a", { href: root + "cells/" + row.id + ".html" }, row.plugin);
  }
  // A field of a row in print (`value_text` of leaderboard/environment.py).
  function text(value) {
    if (value === null || value === undefined || value === "") return "none";
    if (value === "Infinity") return "∞";
    return typeof value === "number" && !Number.isInteger(value) ? number(value) : String(value);
  }
  // A range of ranks in print (`BoardRow.rank` of leaderboard/row_schema.py).
  const COUNTED = { guesswork: " by guesses", "membership-auc": " by members" };
  function rank(row, name) {
    if (!row[name]) return "none";
    const [low, high, count] = row[name], metric = name === "utility_rank" ? row.utility : row.privacy;
    const of = " of " + count + (COUNTED[metric] || ""), keys = row.figures[metric]?.keys;
    if (low !== 1 || high !== count) return (low === high ? low : low + "–" + high) + of;
    return "any" + of + (keys ? ": " + keys + (keys === 1 ? " key rules" : " keys rule") + " out none" : "");
  }
  function interval(low, high, decimals) {
    return low === null || high === null ? "no interval" : number(low, decimals) + " – " + number(high, decimals);
  }
  // The figures of a row that have a value, in the order of the board, each with its column.
  function shown(row) {
    return Object.entries(row.figures).filter(([name, one]) => one.value !== null && columns[name])
      .map(([name, one]) => ({ column: columns[name], figure: one })).sort((a, b) => a.column.order - b.column.order);
  }
  const heading = (column) => column.title + (column.group.includes("says nothing of privacy") ? "" : column.better === "higher" ? " ↑" : " ↓");
  // The attack that gave a figure, and what a reader should know of it.
  function marks(figure) {
    return [
      figure.chance === "inside" && "at chance", !figure.certified && "not certified", figure.unrated && "not rated",
      figure.gaps.length && "an attack stopped",
    ].filter(Boolean);
  }
  const by = (figure) => (figure.attacked ? figure.by.replace(/^(reidentification|membership)-/, "").replace(/-$/, "") : "");
  // A figure as the pages print it (`number` of leaderboard/entries.py): so many decimals, or three digits that count.
  function number(value, decimals) {
    if (value === null || value === undefined) return "none";
    const size = Math.abs(value), whole = size >= 1 ? Math.max(0, 2 - Math.floor(Math.log10(size))) : 0;
    let text = String(Number(value.toPrecision(3)));
    if (Number.isInteger(decimals) && size < 1e9) text = value.toFixed(decimals);
    else if (size >= 1e6 || (size > 0 && size < 1e-4)) {
      const [mantissa, exponent] = value.toExponential(2).split("e");
      text = mantissa + " × 10" + Number(exponent).toString().replace(/[-0-9]/g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);
    } else if (size >= 1) text = value.toLocaleString("en", { minimumFractionDigits: whole, maximumFractionDigits: whole });
    return text.replace("-", "−");
  }

  const digits = (name) => (columns[name] ? columns[name].digits : null);

  return { schema, add, more, built, further, row, load, rows, titles, columns, fields, digits, root, make, state, remember, among, select, verdict, link, number, text, rank, interval, shown, heading, marks, by };
})();
