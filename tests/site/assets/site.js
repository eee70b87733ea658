// Search: the index is loaded at the first use. A part is found if each word of the query begins one of its words; headings count most.
"use strict";
const field = document.getElementById("search"), results = document.getElementById("results"), columns = document.querySelector(".columns");
const up = document.body.dataset.up;
let index = null, asked = false;
const words = s => s.toLowerCase().split(/[^\p{L}\p{N}_.]+/u).filter(Boolean);

function found(parts) {
	index = parts.map(p => ({...p, head: words(p.t + " " + (p.h || "")), body: words(p.x)}));
	search();
}

function load() {
	if (asked) return;
	asked = true;
	const s = document.createElement("script");
	s.src = up + "site/index.js";
	document.head.append(s);
}

function weight(part, query) {
	let sum = 0;
	for (const word of query) {
		const heads = part.head.filter(w => w.startsWith(word)).length, bodies = part.body.filter(w => w.startsWith(word)).length;
		if (heads + bodies === 0) return 0;
		sum += 20 * Math.min(heads, 2) + Math.min(bodies, 5) + 10 * part.head.includes(word);
	}
	return sum * 500 / (500 + part.body.length); // a long part has every word
}

function extract(text, query) {
	const at = Math.max(0, text.toLowerCase().indexOf(query[0]) - 60);
	return (at > 0 ? "…" : "") + text.slice(at, at + 200).trim() + (at + 200 < text.length ? "…" : "");
}

function element(name, text, more) {
	const e = document.createElement(name);
	e.textContent = text;
	return Object.assign(e, more);
}

function search() {
	const query = words(field.value);
	results.hidden = query.length === 0 || index === null;
	columns.hidden = !results.hidden;
	if (results.hidden) return;
	const hits = index.map(p => [weight(p, query), p]).filter(h => h[0] > 0).sort((a, b) => b[0] - a[0]);
	const list = document.createElement("ol");
	for (const [, p] of hits.slice(0, 30)) {
		const item = document.createElement("li");
		const name = p.h && p.h !== p.t ? p.t + ": " + p.h : p.t;
		item.append(element("a", name, {href: up + p.p + (p.a ? "#" + p.a : ""), onclick: leave}), element("p", extract(p.x, query)));
		list.append(item);
	}
	results.replaceChildren(element("h1", hits.length === 0 ? "Nothing has all these words" : hits.length === 1 ? "1 place" : hits.length + " places"), list);
}

// A link into the same page loads nothing, so the text comes back by itself.
function leave() {
	field.value = "";
	setTimeout(search);
}

field.addEventListener("focus", load);
field.addEventListener("input", () => { load(); search(); });
field.form.addEventListener("submit", e => { e.preventDefault(); const a = results.querySelector("a"); if (a) a.click(); });
document.addEventListener("keydown", e => {
	if (e.key === "/" && document.activeElement !== field) { e.preventDefault(); field.focus(); }
	if (e.key === "Escape") { field.value = ""; search(); }
});
if (matchMedia("(max-width:60rem)").matches) document.querySelector("nav details").open = false;
