// Visits pages in Chromium and says what it found. Standard input is {base, shots, visits: [{name, path, width, height, scheme, steps}]}; the
// last line of standard output is a list with, for each visit: console errors, refused by policy, requests to other hosts, axe's
// violations, the time of the first paint in ms, the pixels that it is wider than the window, sentences that are cut, its text, and the seconds of each
// step with the text after the last. With tabs, it also has the controls that the Tab key does not reach.
import {createRequire} from "node:module";
import {readFileSync} from "node:fs";
import {chromium} from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const task = JSON.parse(readFileSync(0, "utf8"));
const browser = await chromium.launch({executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"]});
// until asks again and again: the policy of the page forbids what waits inside it for an expression.
const until = async (page, expression, seconds) => {
	for (const end = Date.now() + (seconds || 20) * 1000; !await page.evaluate(expression);) {
		if (Date.now() > end) throw new Error(expression + " never was true");
		await page.waitForTimeout(50);
	}
};
// unreached presses Tab from the top of a page to its end. It gives the controls that never have the focus, or do not show it.
const unreached = async page => {
	const many = await page.evaluate(() => {
		const all = [...document.querySelectorAll("a[href],button,input:not([type=hidden]),select,summary,[tabindex='0']")].filter(e => e.checkVisibility());
		all.forEach((e, i) => { e.dataset.control = i; });
		document.activeElement.blur();
		return all.length;
	});
	for (let i = 0; i <= many; i++) {
		await page.keyboard.press("Tab");
		await page.evaluate(() => {
			const e = document.activeElement, seen = e.closest("svg") ? e.querySelector("rect") : e; // a lease shows it by its frame
			if (getComputedStyle(seen).outlineStyle !== "none" || getComputedStyle(seen).stroke !== "none") delete e.dataset.control;
		});
	}
	return page.evaluate(() => [...document.querySelectorAll("[data-control]")].map(e => e.outerHTML.slice(0, 200)));
};
const out = [];
for (const v of task.visits) {
	const context = await browser.newContext({viewport: {width: v.width || 1280, height: v.height || 900}, colorScheme: v.scheme || "light", deviceScaleFactor: 1, extraHTTPHeaders: v.user ? {"X-Remote-User": v.user} : {}});
	const page = await context.newPage();
	const found = {name: v.name, errors: [], outside: [], violations: [], took: []};
	page.on("console", m => { if (m.type() === "error" || m.type() === "warning") found.errors.push(m.text()); });
	page.on("pageerror", e => found.errors.push(String(e)));
	page.on("dialog", d => { found.errors.push("a dialog: " + d.message()); d.dismiss(); });
	page.on("request", r => { if (!r.url().startsWith(task.base) && !r.url().startsWith("data:") && !r.url().startsWith("blob:" + task.base)) found.outside.push(r.url()); });
	await page.addInitScript(() => document.addEventListener("securitypolicyviolation", e => console.error("refused by policy: " + e.violatedDirective + " " + e.blockedURI)));
	const reply = await page.goto(task.base + v.path, {waitUntil: "load"});
	found.status = reply.status();
	await until(page, `[...document.querySelectorAll("[data-chart]")].every(c => c.querySelector("canvas") || c.getBoundingClientRect().top > innerHeight)`);
	found.paint = await page.evaluate(() => (performance.getEntriesByName("first-contentful-paint")[0] || {}).startTime);
	found.wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	found.cut = await page.evaluate(() => [...document.querySelectorAll(".says")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent));
	found.text = await page.evaluate(() => document.body.innerText);
	for (const s of v.steps || []) {
		const began = Date.now();
		if (s.into && s.name) await page.setInputFiles(s.into, {name: s.name, mimeType: "text/plain", buffer: Buffer.from(s.text || "")});
		else if (s.into) { await page.fill(s.into, s.text || ""); await page.dispatchEvent(s.into, "change"); }
		if (s.click) await page.click(s.click);
		if (s.key) await page.keyboard.press(s.key);
		if (s.post) await page.evaluate(p => fetch(p, {method: "POST"}), s.post);
		if (s.until) await until(page, s.until, s.seconds).catch(e => found.errors.push(e.message));
		found.took.push((Date.now() - began) / 1000);
	}
	if (v.steps) found.after = await page.evaluate(() => document.body.innerText);
	if (!v.noAxe) {
		await page.evaluate(axe);
		const result = await page.evaluate(() => axe.run(document, {resultTypes: ["violations"]}));
		for (const x of result.violations) found.violations.push(`${x.id}: ${x.help}: ${x.nodes.slice(0, 3).map(n => n.target.join(" ") + " (" + (n.any[0] || n.all[0] || n.none[0] || {}).message + ")").join("; ")}`);
	}
	if (v.tabs) found.unreached = await unreached(page);
	if (task.shots) {
		const high = await page.evaluate(() => document.documentElement.scrollHeight);
		await page.setViewportSize({width: v.width || 1280, height: Math.min(high, 8000)}); // so that all charts are drawn
		await page.waitForTimeout(300);
		await page.screenshot({path: `${task.shots}/${v.name}.png`});
	}
	out.push(found);
	await context.close();
}
await browser.close();
console.log("\n" + JSON.stringify(out));
