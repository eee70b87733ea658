// Draws the charts of a page with uPlot: every element with data-chart, whose value is a chart.Chart as JSON.
"use strict";
(() => {
	const font = '12px system-ui, "DejaVu Sans", sans-serif';
	const dashes = [[], [5, 4], [1, 4], [6, 4, 1, 4]];
	const drawn = new Map(); // element to its plot

	const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const short = v => {
		if (v == null) return "";
		const size = Math.abs(v);
		return size >= 1e4 ? v.toLocaleString("en", {notation: "compact", maximumFractionDigits: 1})
			: size >= 1 && Number.isInteger(v) ? String(v) : String(+v.toPrecision(3));
	};
	const two = n => String(n).padStart(2, "0");
	// Times are in the zone of the site, which data-offsets gives: each FROM:EAST has the seconds east of UTC from a moment on. Else they are in the reader's.
	const offsets = (document.body.dataset.offsets || "").split(" ").filter(Boolean).map(pair => pair.split(":").map(Number));
	const clock = seconds => {
		const t = new Date(seconds * 1000);
		if (offsets.length === 0) return t;
		const there = seconds + (offsets.findLast(([from]) => from <= seconds) || offsets[0])[1];
		const near = new Date((there + t.getTimezoneOffset() * 60) * 1000); // the reader's own offset may be another one at that time
		return new Date((there + near.getTimezoneOffset() * 60) * 1000);
	};
	const moment = seconds => {
		const t = clock(seconds);
		return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}`;
	};
	const timeTicks = (u, splits) => {
		let day = -1;
		return splits.map(s => {
			const t = clock(s), fresh = t.getDate() !== day, text = `${two(t.getHours())}:${two(t.getMinutes())}`;
			day = t.getDate();
			return fresh ? text + `\n${two(t.getMonth() + 1)}-${two(t.getDate())}` : text;
		});
	};
	// Decades get a label on a logarithmic axis, and 2 and 5 times these where there are few.
	const logTicks = (u, splits) => {
		const few = Math.log10(splits.at(-1) / splits[0]) <= 2;
		return splits.map(v => [1].concat(few ? [2, 5] : []).includes(+(v / 10 ** Math.floor(Math.log10(v) + 1e-9)).toPrecision(6)) ? short(v) : "");
	};

	const bounds = (axis, values) => {
		if (axis.max > (axis.min || 0)) return [axis.min || 0, axis.max];
		let lo = Infinity, hi = -Infinity;
		for (const list of values) for (const v of list || []) if (v != null) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
		if (lo > hi) return [0, 1];
		return axis.log ? [10 ** Math.floor(Math.log10(lo)), 10 ** Math.ceil(Math.log10(hi))] : [lo, hi > lo ? hi : lo + 1];
	};
	const fromZero = (axis, values) => {
		if (axis.max > (axis.min || 0)) return [axis.min || 0, axis.max];
		const [lo, hi] = bounds(axis, values);
		return axis.log ? [lo, hi] : [Math.min(lo, 0), hi > 0 ? hi * 1.05 : 1];
	};
	const scale = (axis, range) => ({time: !!axis.time, distr: axis.log ? 3 : 1, range: () => range});
	const axisOf = (axis, more) => ({
		label: axis.time ? undefined : axis.label, font, labelFont: font, stroke: css("--soft"), labelSize: 18, labelGap: 0, size: axis.time ? 36 : 24,
		grid: {stroke: css("--rule"), width: 1}, ticks: {show: false}, gap: 4,
		values: axis.time ? timeTicks : axis.log ? logTicks : (u, splits) => splits.map(short),
		...more,
	});
	const colour = s => s.plain ? css("--fg") : css("--k" + s.colour);

	// Dotted vertical lines.
	const marks = c => u => {
		const {ctx, bbox} = u;
		ctx.save();
		ctx.strokeStyle = css("--fg");
		ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
		for (const m of c.marks || []) {
			const x = u.valToPos(m, "x", true);
			ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
		}
		ctx.restore();
	};

	// The numbers at the pointer are shown in the legend, and those of a row or a dot in a tip.
	const legend = (host, c, values) => {
		const out = host.parentElement.querySelectorAll(".legend .value");
		return u => {
			const i = u.cursor.idx;
			out.forEach((o, k) => { o.textContent = i == null || values[k][i] == null ? "" : short(values[k][i]); });
			host.title = i == null ? "" : c.x.time ? moment(u.data[0][i]) : `${c.x.label}: ${short(u.data[0][i])}`;
		};
	};
	const tip = (host, find) => {
		const box = document.createElement("div");
		box.className = "tip"; box.hidden = true;
		host.append(box);
		return u => {
			const found = u.cursor.left >= 0 && find(u, u.cursor.left, u.cursor.top);
			box.hidden = !found;
			if (!found) return;
			box.textContent = found;
			const right = u.cursor.left > u.over.clientWidth / 2;
			box.style.left = right ? "" : u.over.offsetLeft + u.cursor.left + 14 + "px";
			box.style.right = right ? host.clientWidth - u.over.offsetLeft - u.cursor.left + 14 + "px" : "";
			box.style.top = u.over.offsetTop + Math.max(u.cursor.top - 10, 0) + "px";
		};
	};

	const lines = (host, c) => {
		const tables = c.series.map(s => [s.x || c.series[0].x, s.y]);
		const data = tables.length > 1 ? uPlot.join(tables, tables.map(() => [0, 1])) : tables[0];
		const series = c.series.map(s => ({
			stroke: colour(s), width: 1.9, dash: s.plain ? [5, 3] : dashes[s.dash || 0],
			points: s.points ? {show: true, size: s.points, fill: colour(s)} : {show: false},
			paths: s.steps ? uPlot.paths.stepped({align: 1}) : undefined,
		}));
		return {
			data, series: [{}, ...series],
			scales: {x: scale(c.x, bounds(c.x, [data[0]])), y: scale(c.y, fromZero(c.y, data.slice(1)))},
			axes: [axisOf(c.x), axisOf(c.y, {size: 44})],
			hooks: {draw: [marks(c)], setCursor: [legend(host, c, data.slice(1))]},
		};
	};

	const areas = (host, c) => {
		const x = c.series[0].x, sums = [], series = [], bands = [];
		let under = x.map(() => 0), last = 0;
		c.series.forEach((s, i) => {
			const steps = s.steps ? uPlot.paths.stepped({align: 1}) : undefined;
			if (s.over) {
				sums.push(s.y);
				series.push({stroke: colour(s), width: 1.4, dash: [5, 3], points: {show: false}, paths: steps});
				return;
			}
			const gaps = s.y.map((v, k) => v == null ? null : under[k] + v);
			under = under.map((v, k) => v + (s.y[k] || 0));
			sums.push(gaps);
			series.push({stroke: colour(s), fill: colour(s), width: 0, points: {show: false}, paths: steps});
			if (last) bands.push({series: [i + 1, last], fill: colour(s)});
			last = i + 1;
		});
		return {
			data: [x, ...sums], series: [{}, ...series], bands,
			scales: {x: scale(c.x, bounds(c.x, [x])), y: scale(c.y, fromZero(c.y, sums))},
			axes: [axisOf(c.x), axisOf(c.y, {size: 44})],
			hooks: {draw: [marks(c)], setCursor: [legend(host, c, c.series.map(s => s.y))]},
		};
	};

	const rowHeight = 18;
	const rows = (host, c, paint, extent) => {
		const per = c.kind === "bars" ? c.series.length : 1, n = c.rows.length * per;
		host.style.height = n * rowHeight + 52 + "px";
		const measure = document.createElement("canvas").getContext("2d");
		measure.font = font;
		const room = Math.min(host.clientWidth * 0.4, 220);
		const cut = name => {
			if (measure.measureText(name).width <= room) return name;
			let n = name.length; // names of one site often differ at the end
			while (n > 2 && measure.measureText(name.slice(0, n / 2) + "…" + name.slice(-n / 2)).width > room) n -= 2;
			return name.slice(0, n / 2) + "…" + name.slice(-n / 2);
		};
		const names = c.rows.map(cut), size = Math.max(20, ...names.map(s => measure.measureText(s).width)) + 10;
		return {
			data: [[0, 1], [null, null]], series: [{}, {}],
			scales: {x: scale(c.x, fromZero(c.x, extent)), y: {range: () => [-0.5, n - 0.5], dir: -1}},
			axes: [axisOf(c.x), {
				...axisOf({}), label: undefined, size, stroke: css("--fg"), grid: {show: false},
				splits: () => c.rows.map((_, i) => i * per + (per - 1) / 2), values: () => names,
			}],
			hooks: {
				draw: [marks(c), u => {
					u.ctx.save();
					u.ctx.font = `${11 * devicePixelRatio}px system-ui, "DejaVu Sans", sans-serif`;
					u.ctx.textBaseline = "middle";
					u.ctx.textAlign = "left";
					paint(u, v => u.valToPos(v, "x", true), (row, k) => u.valToPos(row * per + k, "y", true), 6 * devicePixelRatio);
					u.ctx.restore();
				}],
				setCursor: [tip(host, (u, left, top) => {
					const at = Math.round(u.posToVal(top, "y")), row = Math.floor(at / per), s = c.series[c.kind === "bars" ? at % per : 0];
					return s && row >= 0 && row < c.rows.length ? (s.tips && s.tips[row]) || `${c.rows[row]}, ${s.name}: ${(s.texts || [])[row] || short((s.y || [])[row])}` : "";
				})],
			},
			padding: [8, c.kind === "bars" ? 46 : 14, 0, 0],
		};
	};
	const bars = (host, c) => rows(host, c, (u, x, y, half) => {
		c.series.forEach((s, k) => s.y.forEach((v, row) => {
			const zero = x(Math.max(u.scales.x.min, 0)), at = y(row, k);
			u.ctx.fillStyle = s.colours ? css("--k" + s.colours[row]) : colour(s);
			if (v != null) u.ctx.fillRect(Math.min(zero, x(v)), at - half, Math.abs(x(v) - zero), 2 * half);
			u.ctx.fillStyle = css("--fg");
			u.ctx.fillText((s.texts || [])[row] || short(v), x(v == null ? 0 : Math.max(v, 0)) + 4 * devicePixelRatio, at);
		}));
	}, c.series.map(s => s.y));
	const boxes = (host, c) => rows(host, c, (u, x, y, half) => {
		const {ctx, bbox} = u, end = bbox.left + bbox.width;
		ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
		ctx.lineWidth = devicePixelRatio;
		c.series[0].boxes.forEach((b, row) => {
			if (!b.count) return;
			const at = y(row, 0);
			ctx.strokeStyle = css("--soft");
			ctx.beginPath(); ctx.moveTo(x(b.min), at); ctx.lineTo(x(b.max), at); ctx.stroke();
			ctx.fillStyle = css("--k4"); ctx.strokeStyle = css("--k0");
			const wide = Math.max(x(b.q3) - x(b.q1), devicePixelRatio);
			ctx.fillRect(x(b.q1), at - half, wide, 2 * half); ctx.strokeRect(x(b.q1), at - half, wide, 2 * half);
			ctx.strokeStyle = css("--fg");
			ctx.beginPath(); ctx.moveTo(x(b.median), at - half); ctx.lineTo(x(b.median), at + half); ctx.stroke();
			if (x(b.max) > end) { // it goes on beyond the axis
				ctx.fillStyle = css("--soft");
				ctx.beginPath(); ctx.moveTo(end - half, at - half); ctx.lineTo(end, at); ctx.lineTo(end - half, at + half); ctx.fill();
			}
		});
	}, [c.series[0].boxes.map(b => b.max)]);

	const dots = (host, c) => {
		const all = c.series.flatMap(s => s.x.map((x, i) => ({s, x, y: s.y[i], tip: (s.tips || [])[i] || s.name, text: (s.texts || [])[i], large: s.large === i + 1}))).sort((a, b) => b.large - a.large);
		return {
			data: [[0, 1], [null, null]], series: [{}, {}],
			scales: {x: scale(c.x, bounds(c.x, c.series.map(s => s.x))), y: scale(c.y, bounds(c.y, c.series.map(s => s.y)))},
			axes: [axisOf(c.x), axisOf(c.y, {size: 44})],
			hooks: {
				draw: [marks(c), u => {
					const {ctx} = u, r = devicePixelRatio;
					ctx.save();
					ctx.font = `${11 * r}px system-ui, "DejaVu Sans", sans-serif`;
					ctx.textAlign = "center";
					const names = []; // where a name is already
					for (const d of all) {
						const x = u.valToPos(d.x, "x", true), y = u.valToPos(d.y, "y", true);
						ctx.fillStyle = colour(d.s);
						ctx.beginPath(); ctx.arc(x, y, (d.large ? 6 : 3) * r, 0, 2 * Math.PI); ctx.fill();
						if (d.text && !names.some(n => Math.abs(n[0] - x) < 22 * r && Math.abs(n[1] - y) < 12 * r)) {
							names.push([x, y]);
							ctx.fillStyle = css("--soft"); ctx.fillText(d.text, x, y - 8 * r);
						}
					}
					ctx.restore();
				}],
				setCursor: [tip(host, (u, left, top) => {
					let best = null, least = 20 * 20;
					for (const d of all) {
						const far = (u.valToPos(d.x, "x") - left) ** 2 + (u.valToPos(d.y, "y") - top) ** 2;
						if (far < least) { least = far; best = d; }
					}
					return best ? best.tip : "";
				})],
			},
		};
	};

	const kinds = {lines, areas, bars, boxes, dots};
	const sight = new IntersectionObserver(seen => {
		for (const e of seen) if (e.isIntersecting) { sight.unobserve(e.target); make(e.target); }
	}, {rootMargin: "300px"});
	const sizes = new ResizeObserver(seen => {
		for (const e of seen) {
			const plot = drawn.get(e.target);
			if (plot && Math.abs(plot.width - e.target.clientWidth) > 1 && e.target.clientWidth) {
				plot.setSize({width: e.target.clientWidth, height: plot.height});
			}
		}
	});
	const make = host => {
		const c = JSON.parse(host.dataset.chart);
		host.replaceChildren();
		if (!c.series || !c.series.length) return;
		const {data, ...opts} = kinds[c.kind](host, c);
		const plot = new uPlot({
			width: host.clientWidth, height: host.clientHeight, legend: {show: false}, padding: [8, 20, 0, 0],
			tzDate: clock, cursor: {drag: {setScale: false}, points: {size: 5}, y: c.kind === "dots"}, ...opts,
		}, data, host);
		drawn.set(host, plot);
		sizes.observe(host);
	};
	// draw draws the charts under an element when they come into sight, and forgets those that are no longer in the page.
	const draw = root => {
		for (const [host, plot] of drawn) {
			if (!host.isConnected) { plot.destroy(); sizes.unobserve(host); drawn.delete(host); }
		}
		for (const host of root.querySelectorAll("[data-chart]")) if (!drawn.has(host)) sight.observe(host);
	};
	const again = () => {
		for (const [host, plot] of drawn) { plot.destroy(); drawn.delete(host); make(host); }
	};
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
	addEventListener("beforeprint", () => { for (const host of document.querySelectorAll("[data-chart]")) if (!drawn.has(host)) make(host); });
	window.fairleaseCharts = {draw, again};
	if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => draw(document));
	else draw(document);
})();
