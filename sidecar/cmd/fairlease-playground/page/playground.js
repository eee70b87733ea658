// The page: it asks workers, which run the simulator, and shows their answers. No other script is loaded, and no request leaves for another host.
"use strict";
(() => {
	const $ = id => document.getElementById(id);
	const schedulers = ["astraea", "slurm-multifactor", "slurm-preempt"];
	const mostRounds = 1000, mostSquares = 6000, mostBytes = 1 << 30;
	const form = $("form");

	// Workers. One task at a time each; stopping a task ends its worker.
	let module, next = 1, workers = [];
	const here = new URL(".", location.href).href;
	const hire = () => {
		// A worker made from a blob is bound by the page's policy; one from a file of its own would not be.
		const url = URL.createObjectURL(new Blob([`importScripts("${here}wasm_exec.js", "${here}worker.js")`], {type: "text/javascript"}));
		const w = new Worker(url), asked = new Map();
		w.onmessage = ({data: m}) => {
			const a = asked.get(m.id);
			if (!a) return;
			if ("progress" in m || "round" in m) { a.each(m); return; }
			asked.delete(m.id);
			if (m.error) a.fail(new Error(m.error)); else a.done(m.value);
		};
		w.onerror = e => { for (const a of asked.values()) a.fail(new Error("The simulator has stopped: " + e.message + ". Reload the page.")); asked.clear(); };
		w.postMessage({module});
		return {
			ask: (task, message, each) => new Promise((done, fail) => {
				asked.set(next, {done, fail, each});
				w.postMessage({...message, task, id: next++});
			}),
			end: () => { w.terminate(); URL.revokeObjectURL(url); for (const a of asked.values()) a.fail(stopped); },
		};
	};
	const stopped = new Error("stopped");
	const start = async () => {
		const reply = await fetch("fairlease.wasm.gz");
		if (!reply.ok) throw new Error(`fairlease.wasm.gz: the server answers ${reply.status}. Build the page with make playground, and serve the whole folder.`);
		let body = await reply.arrayBuffer();
		const head = new Uint8Array(body, 0, 2);
		if (head[0] === 0x1f && head[1] === 0x8b) // a server may have unpacked it
			body = await new Response(new Blob([body]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
		module = await WebAssembly.compile(body);
		workers = schedulers.map(hire);
	};

	const show = (e, on) => { e.hidden = !on; };
	const fail = e => {
		if (e === stopped) { $("status").textContent = "Stopped. Change something, or simulate again."; return; }
		$("why").textContent = e.message;
		show($("error"), true);
		$("error").scrollIntoView({block: "nearest"});
		$("status").textContent = "";
	};
	const clear = () => show($("error"), false);
	const cell = (tag, text, more) => { const c = document.createElement(tag); c.textContent = text; Object.assign(c, more); return c; };
	const row = cells => { const r = document.createElement("tr"); r.append(...cells); return r; };
	const number = (n, digits = 0) => n.toLocaleString("en", {maximumFractionDigits: digits});

	// The source of jobs, and what is known of it.
	let source, facts = null, file, count = 0;
	const chosen = () => ({
		nodes: $("nodes").value.trim(), saves: $("saves").value, interval: $("interval").value, until: $("end").value === "all" ? "" : Math.max(1, Math.ceil(facts.hours / 24)) + "d",
		weights: Object.fromEntries([...$("weights").querySelectorAll("input")].map(i => [i.dataset.tenant, Math.round(+i.value)])),
	});
	let reading = 0, knowing; // the number of the newest reading; its end
	const read = async () => {
		clear();
		const own = form.elements.source.value === "file";
		show($("own"), own);
		show($("recipe"), !own);
		const mine = ++reading;
		if (!module || own && !file || !own && !form.checkValidity()) {
			know(null);
			$("facts").textContent = own ? "No file is chosen yet." : "";
			return;
		}
		const asks = own ? {file} : {recipe: {nodes: $("nodes").value.trim(), tenants: +$("tenants").value, load: +$("load").value, seed: +$("seed").value}};
		$("facts").textContent = own ? `${file.name} is being read.` : "Jobs are being drawn.";
		try {
			if (own && file.size > mostBytes) throw new Error(`${file.name} has ${number(file.size / 2 ** 20)} MiB, and a page can hold 1,024 MiB: take fewer weeks, or use fairlease simulate`);
			const mySource = {key: ++count, ...asks}, found = await workers[0].ask("load", {source: mySource});
			if (mine !== reading) return;
			source = mySource;
			know(found);
		} catch (e) {
			if (mine !== reading) return;
			know(null);
			$("facts").textContent = "";
			fail(e);
		}
	};
	// know shows what is known of the jobs; null = nothing.
	const know = found => {
		const names = f => JSON.stringify(f && f.tenants.map(t => t.name)), same = names(facts) === names(found);
		facts = found;
		$("run").disabled = !facts;
		show($("weighing"), facts);
		if (!facts) return;
		$("facts").textContent = `${facts.name}: ${number(facts.jobs)} jobs of ${facts.tenants.length} ${facts.tenants.length === 1 ? "account" : "accounts"} in ${number(facts.hours / 24, 1)} days; ` +
			`they need ${number(facts.demand)} GPUs on average, the largest ${facts.gang}.` + (facts.left_out ? ` Left out: ${facts.left_out}.` : "") +
			(source.file && facts.tenants.length === 1 ? " There is nobody to share with: where Slurm hides others' jobs (PrivateData), an operator has to write the history." : "");
		show($("bad"), facts.bad && facts.bad.length);
		$("bad").querySelector("ul").replaceChildren(...(facts.bad || []).map(b => cell("li", b)));
		if (!same) {
			const had = new Map([...$("weights").querySelectorAll("input")].map(i => [i.dataset.tenant, i.value]));
			$("weights").replaceChildren(...facts.tenants.map(t => {
				const i = Object.assign(document.createElement("input"), {type: "number", min: 0, max: 1e9, step: 1, value: had.get(t.name) || 1, required: true, ariaLabel: "Weight of " + t.name});
				i.dataset.tenant = t.name;
				const td = document.createElement("td");
				td.append(i);
				return row([cell("th", t.name, {scope: "row"}), cell("td", number(t.jobs)), cell("td", number(100 * t.share, 1) + " %"), td]);
			}));
		}
		$("status").textContent = "Ready.";
	};

	// A simulation.
	let last; // the choice that the result is of
	const working = on => {
		show($("stop"), on);
		show($("bar"), on);
		$("run").disabled = on || !facts;
		$("record").disabled = on;
		for (const f of form.querySelectorAll("fieldset")) f.disabled = on;
	};
	const simulate = async () => {
		clear();
		const choice = chosen(), began = performance.now(), over = schedulers.map(() => 0), all = facts.jobs * schedulers.length;
		working(true);
		try {
			$("bar").value = 0;
			$("status").textContent = "Simulating.";
			const outcomes = await Promise.all(schedulers.map((scheduler, i) => workers[i].ask("run", {source, choice, scheduler}, m => {
				over[i] = m.progress;
				const sum = over.reduce((a, b) => a + b);
				$("bar").value = sum / all;
				$("status").textContent = `Simulating: ${number(sum)} of ${number(all)} ends of jobs.`;
			})));
			const report = await workers[0].ask("write", {scores: JSON.stringify(outcomes.map(o => o.scores))});
			last = {choice, source, facts};
			present(report, outcomes, choice, (performance.now() - began) / 1000);
		} catch (e) {
			if (e !== stopped) end(); // the others would go on
			fail(e);
		} finally {
			working(false);
		}
	};
	const end = () => {
		for (const w of workers) w.end();
		workers = schedulers.map(hire);
	};
	const offer = (link, text, type) => {
		if (link.href) URL.revokeObjectURL(link.href);
		link.href = URL.createObjectURL(new Blob([text], {type}));
	};
	const present = (report, outcomes, choice, seconds) => {
		const weighed = new Set(Object.values(choice.weights)).size > 1;
		$("told").textContent = (source.recipe ? `Generated jobs, seed ${source.recipe.seed}: ` : "") + `${number(facts.jobs)} jobs of ${facts.tenants.length} accounts on ${choice.nodes}, ` +
			`${weighed ? "with the weights above" : "with equal weights"}; a round every ${choice.interval}, leases of 15 minutes; ` +
			`${number(Math.max(...outcomes.map(o => o.scores.to_ms - o.scores.from_ms)) / 864e5, 1)} days of simulated time` +
			`${choice.until ? ", and what has not ended by then is unfinished" : ", until all jobs are done"}. It took ${number(seconds, 1)} s.`;
		$("head").innerHTML = report.head; // html/template has escaped the names in it
		$("report").innerHTML = report.body;
		$("notes").replaceChildren(...outcomes.flatMap(o => o.notes || []).map(n => cell("li", n)));
		offer($("save-html"), report.file, "text/html");
		offer($("save-json"), report.json, "application/json");
		for (const id of ["result", "report", "replay"]) show($(id), true);
		show($("film"), false);
		$("recorded").textContent = "";
		rounds = [];
		fairleaseCharts.draw($("report"));
		$("status").textContent = "Done.";
		$("result-title").focus();
	};

	// The replay of rounds.
	let rounds = [], nodes = [], at = 0;
	const clock = s => `day ${Math.floor(s / 86400) + 1}, ${new Date(s * 1000).toISOString().slice(11, 19)}`;
	const record = async () => {
		clear();
		working(true);
		show($("bar"), false);
		rounds = [];
		try {
			nodes = await workers[0].ask("nodes", {choice: last.choice});
			$("recorded").textContent = "Simulating up to there.";
			await workers[0].ask("replay", {source: last.source, choice: last.choice, from: Math.round(3600 * $("from").value), most: mostRounds}, m => {
				rounds.push(m.round);
				if (rounds.length === 1 || rounds.length % 50 === 0) recorded();
			});
		} catch (e) {
			fail(e);
		} finally {
			recorded();
			working(false);
		}
	};
	const recorded = () => {
		if (!rounds.length) { $("recorded").textContent = "No round is that late: choose an earlier hour."; show($("film"), false); return; }
		$("recorded").textContent = `${number(rounds.length)} rounds, from ${clock(JSON.parse(rounds[0]).at)} to ${clock(JSON.parse(rounds.at(-1)).at)}.` +
			(rounds.length === mostRounds ? " For later ones choose a later hour." : "");
		$("round").max = rounds.length - 1;
		show($("film"), true);
		if (rounds.length === 1) { at = 0; $("round").value = 0; look(); }
	};
	const look = () => {
		const r = JSON.parse(rounds[at]), held = r.holds.reduce((a, j) => a + j.gpus, 0), all = nodes.reduce((a, n) => a + n.gpus, 0);
		const colour = new Map(r.tenants.map((t, i) => [t.name, "k" + i % 20]));
		$("round").setAttribute("aria-valuetext", clock(r.at));
		$("when").textContent = `Round ${number(r.round)}, ${clock(r.at)}: ${number(r.holds.length)} jobs hold ${number(held)} of ${number(all)} GPUs, ${number(r.waiting)} wait.`;
		$("floor").replaceChildren(all > mostSquares ? cell("p", "The cluster is too large for a picture: see the tables.") : floor(r, colour));
		const named = t => { const c = cell("th", t, {scope: "row"}), s = document.createElement("span"); s.className = "swatch " + colour.get(t); c.prepend(s); return c; };
		const job = j => [cell("th", j.name, {scope: "row"}), cell("td", j.why, {className: "text"}), cell("td", j.gpus), cell("td", j.tenant), cell("td", j.user)];
		const place = j => (j.nodes || []).map(h => h.gpus + " on " + h.node).join(", ");
		$("tables").replaceChildren(
			table("Tenants", ["Tenant", "holds, GPUs", "due, GPUs", "waiting jobs"], r.tenants.map(t => [named(t.name), cell("td", t.holds), cell("td", number(t.due, 2)), cell("td", t.waiting)])),
			table("Waiting jobs" + (r.waiting > r.waits.length ? `: the first ${r.waits.length} of ${number(r.waiting)}` : ""), ["Job", "The job", "GPUs", "tenant", "user"], r.waits.map(job)),
			table("Jobs that hold GPUs", ["Job", "The job", "GPUs", "tenant", "user", "nodes"], r.holds.map(j => [...job(j), cell("td", place(j), {className: "text"})])));
	};
	const table = (name, head, rows) => {
		const box = document.createElement("div"), scroll = document.createElement("div"), t = document.createElement("table");
		Object.assign(scroll, {className: "scroll", tabIndex: 0, role: "group", ariaLabel: name});
		t.append(row(head.map(h => cell("th", h, {scope: "col", className: h === "The job" || h === "nodes" ? "text" : ""}))), ...rows.map(row));
		scroll.append(t);
		box.append(cell("h3", name), rows.length ? scroll : cell("p", "None."));
		return box;
	};
	// floor draws each node as a row of squares, one for each GPU, in the colours of their holders.
	const floor = (r, colour) => {
		const svgOf = (tag, attributes, text) => {
			const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
			for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
			if (text !== undefined) e.textContent = text;
			return e;
		};
		const on = new Map(nodes.map(n => [n.node, []]));
		for (const j of r.holds) for (const h of j.nodes || []) for (let i = 0; i < h.gpus; i++) on.get(h.node).push(j);
		const size = 12, gap = 10, most = Math.max(...nodes.map(n => n.gpus)), wide = Math.max(most * size, 40) + gap, columns = Math.max(1, Math.floor(Math.min($("film").clientWidth || 900, 1160) / wide));
		const svg = svgOf("svg", {viewBox: `0 0 ${columns * wide} ${Math.ceil(nodes.length / columns) * (size + 14)}`});
		nodes.forEach((n, i) => {
			const x = i % columns * wide, y = Math.floor(i / columns) * (size + 14);
			svg.append(svgOf("text", {x, y: y + 8}, n.node));
			for (let g = 0; g < n.gpus; g++) {
				const j = on.get(n.node)[g], square = svgOf("rect", {x: x + g * size + .5, y: y + 10, width: size - 1.5, height: size - 1.5, class: j ? "held " + colour.get(j.tenant) : ""});
				square.append(svgOf("title", {}, j ? `job ${j.name} of ${j.tenant}, ${j.gpus} GPUs` : "idle"));
				svg.append(square);
			}
		});
		return svg;
	};
	const step = by => { at = Math.min(Math.max(at + by, 0), rounds.length - 1); $("round").value = at; look(); };

	form.addEventListener("submit", async e => {
		e.preventDefault();
		await knowing; // a field that was left just now may have other jobs
		if (facts && $("stop").hidden) simulate();
	});
	form.addEventListener("change", e => {
		if (e.target.id === "file") file = e.target.files[0];
		if (["tenants", "load", "seed", "file"].includes(e.target.id) || e.target.name === "source" || e.target.id === "nodes" && form.elements.source.value === "generate") knowing = read();
	});
	$("stop").addEventListener("click", end);
	$("record").addEventListener("click", () => { if ($("from").reportValidity()) record(); });
	$("round").addEventListener("input", () => { at = +$("round").value; look(); });
	$("back").addEventListener("click", () => step(-1));
	$("on").addEventListener("click", () => step(1));
	// A file may be dropped anywhere on the page.
	addEventListener("dragover", e => { e.preventDefault(); $("drop").classList.add("over"); });
	addEventListener("dragleave", () => $("drop").classList.remove("over"));
	addEventListener("drop", e => {
		e.preventDefault();
		$("drop").classList.remove("over");
		if (!e.dataTransfer.files.length || !$("stop").hidden) return;
		file = e.dataTransfer.files[0];
		$("file").files = e.dataTransfer.files;
		form.elements.source.value = "file";
		knowing = read();
	});
	start().then(() => { $("status").textContent = ""; knowing = read(); return knowing; }).catch(fail);
})();
