// Runs the simulator beside the page. A message names a task; answers have its id: {id, progress}, {id, round}, and at the end {id, value} or {id, error}.
"use strict";
const go = new Go();
let started, kept; // the source of the jobs that the simulator has
onmessage = async ({data: m}) => {
	try {
		if (m.module) {
			started = WebAssembly.instantiate(m.module, go.importObject).then(instance => { go.run(instance); });
			return;
		}
		await started;
		const answer = await tasks[m.task](m);
		postMessage({id: m.id, ...JSON.parse(answer)});
	} catch (e) {
		postMessage({id: m.id, error: "The simulator has stopped: " + e.message + ". Reload the page."});
	}
};
// load gives the simulator the jobs of a source, unless it has them.
const load = async source => {
	if (kept === source.key) return facts;
	kept = null;
	facts = source.file ? fairlease.read(source.file.name, new Uint8Array(await source.file.arrayBuffer())) : fairlease.generate(JSON.stringify(source.recipe));
	if (!JSON.parse(facts).error) kept = source.key;
	return facts;
};
let facts;
const tasks = {
	load: m => load(m.source),
	run: async m => {
		const found = await load(m.source);
		if (JSON.parse(found).error) return found;
		const step = Math.max(1, JSON.parse(found).value.jobs / 100);
		let told = 0;
		return fairlease.run(JSON.stringify(m.choice), m.scheduler, over => {
			if (over < told + step) return;
			told = over;
			postMessage({id: m.id, progress: over});
		});
	},
	write: m => fairlease.write(m.scores),
	replay: async m => {
		const found = await load(m.source);
		if (JSON.parse(found).error) return found;
		let n = 0;
		const answer = fairlease.replay(JSON.stringify(m.choice), m.from, round => {
			postMessage({id: m.id, round});
			return ++n < m.most;
		});
		return answer;
	},
	nodes: m => fairlease.nodes(JSON.stringify(m.choice)),
};
