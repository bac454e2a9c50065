// What the scripts of the pages share: the rows' figures, which come as scripts because pages opened from a disk may
// load nothing else, the state in the address, and a way to make elements out of text, never out of markup.
"use strict";

const veil = (function () {
  const rows = [];
  const titles = {};
  const digits = {};
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

  // What an address asks for, where it is one of the things there are; else nothing, as the control beside it shows.
  function among(value, known) {
    return Array.from(known).includes(value) ? value : "";
  }
  function select(label, options, value, onchange) {
    const list = make("select", {}, options.map(([key, text]) => make("option", { value: key, selected: key === value }, text)));
    list.addEventListener("change", () => onchange(list.value));
    return make("label", {}, label + " ", list);
  }

  function add(some, names, decimals) {
    rows.push(...some);
    Object.assign(titles, names);
    Object.assign(digits, decimals);
  }
  // Rows of a board that is too long for one page, as plain data: [name, attributes, what it holds ...].
  const further = [];
  function more(some) {
    further.push(...some);
  }
  function built(node) {
    return typeof node === "string" ? node : make(node[0], node[1], node.slice(2).map(built));
  }
  function row(found) {
    known[found.id] = found;
    (waiting[found.id] || []).forEach((tell) => tell(found));
    delete waiting[found.id];
  }
  // Hand a row with all of its figures to `tell`; null where there is no row of that name.
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
  function verdict(found) {
    return make("span", { class: "verdict " + found.verdict.replaceAll(" ", "-") }, make("b", { "aria-hidden": "true" }, found.sign), " " + found.verdict);
  }
  function link(found) {
    return make("a", { href: root + "cells/" + found.id + ".html" }, found.method);
  }
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

  return { add, more, built, further, row, load, rows, titles, digits, root, make, state, remember, among, select, verdict, link, number };
})();
