// Makes the pages live. Without it they are complete but for charts, and stay as they were loaded.
"use strict";
(() => {
	const body = document.body, link = document.getElementById("link");
	const root = document.documentElement;

	// The theme is kept in a cookie, so that the server makes the page right at once.
	const theme = document.getElementById("theme");
	const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
	name();
	theme.hidden = false;
	theme.addEventListener("click", () => {
		root.dataset.theme = dark() ? "light" : "dark";
		document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; SameSite=Strict`;
		name();
		fairleaseCharts.again();
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);

	// swap takes the parts of a page that have changed, and keeps what the reader has opened, scrolled or focused.
	const swap = text => {
		const fresh = new DOMParser().parseFromString(text, "text/html");
		body.dataset.serial = fresh.body.dataset.serial;
		for (const part of fresh.querySelectorAll("[data-swap]")) {
			const old = document.getElementById(part.id);
			if (!old || sources.get(part.id) === part.innerHTML) continue;
			sources.set(part.id, part.innerHTML);
			const focus = old.contains(document.activeElement) ? document.activeElement : null;
			const key = focus && (focus.getAttribute("href") || focus.getAttribute("aria-label") || focus.textContent);
			const open = [...old.querySelectorAll("details[open]>summary")].map(s => s.textContent);
			const scrolled = [...old.querySelectorAll(".scroll")].map(s => s.scrollLeft);
			old.className = part.className;
			old.replaceChildren(...part.childNodes);
			for (const s of old.querySelectorAll("details>summary")) if (open.includes(s.textContent)) s.parentElement.open = true;
			old.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = scrolled[i] || 0; });
			if (focus) {
				const again = [...old.querySelectorAll(focus.localName)].find(e => (e.getAttribute("href") || e.getAttribute("aria-label") || e.textContent) === key);
				if (again) again.focus({preventScroll: true});
			}
			fairleaseCharts.draw(old);
		}
	};
	const sources = new Map();
	for (const part of document.querySelectorAll("[data-swap]")) sources.set(part.id, part.innerHTML);

	// The newest leases are at the right.
	for (const g of document.querySelectorAll(".gantt")) g.parentElement.scrollLeft = g.parentElement.scrollWidth;

	let busy = false, again = false;
	const renew = async () => {
		if (busy) { again = true; return; }
		busy = true;
		try {
			const reply = await fetch(location.href, {headers: {Accept: "text/html"}});
			if (!reply.ok) throw new Error(reply.status);
			swap(await reply.text());
			link.textContent = "";
		} catch {
			link.textContent = "No connection: this may be old";
		}
		busy = false;
		if (again) { again = false; setTimeout(renew, 1000); }
	};

	const live = document.getElementById("live");
	let stream = null;
	const follow = () => {
		stream = new EventSource(body.dataset.live);
		stream.addEventListener("round", e => { if (String(JSON.parse(e.data).serial) !== body.dataset.serial) renew(); });
		stream.addEventListener("error", () => { link.textContent = "No connection: this may be old"; });
		stream.addEventListener("open", () => { link.textContent = ""; });
	};
	const stop = () => { if (stream) stream.close(); stream = null; };
	if (live) {
		live.hidden = false;
		const set = on => {
			live.setAttribute("aria-pressed", on);
			sessionStorage.setItem("live", on);
			if (on && !document.hidden) { renew(); follow(); } else stop();
		};
		live.addEventListener("click", () => set(live.getAttribute("aria-pressed") !== "true"));
		if (sessionStorage.getItem("live") === "false") live.setAttribute("aria-pressed", "false");
		else follow();
		document.addEventListener("visibilitychange", () => {
			if (live.getAttribute("aria-pressed") !== "true") return;
			if (document.hidden) stop(); else if (!stream) { renew(); follow(); }
		});
	}

	// The decisions of rounds one after the other: by the arrow keys, or by themselves.
	const play = document.getElementById("play");
	if (play) {
		const step = key => { const to = document.querySelector(`[data-key=${key}]`); if (to) location.assign(to.href); return !!to; };
		document.addEventListener("keydown", e => {
			if (e.altKey || e.ctrlKey || e.metaKey || e.shiftKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || e.target.closest(".scroll")) return;
			if (e.key === "ArrowLeft" || e.key === "ArrowRight") step(e.key);
		});
		let timer = 0;
		const set = on => {
			play.setAttribute("aria-pressed", on);
			play.textContent = on ? "Pause" : "Play";
			sessionStorage.setItem("play", on);
			clearTimeout(timer);
			if (on) timer = setTimeout(() => { if (!step("ArrowRight")) set(false); }, 1500);
		};
		play.hidden = false;
		play.addEventListener("click", () => set(play.getAttribute("aria-pressed") !== "true"));
		if (sessionStorage.getItem("play") === "true") set(true);
	}
})();
