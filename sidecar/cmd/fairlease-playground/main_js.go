package main

import (
	"context"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"syscall/js"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/playground"
)

// The functions that page/worker.js calls. Each gives {value} or {error} as JSON. One world at a time is kept.
func main() {
	// Memory is mostly short-lived. Each growth of the memory makes the browser collect garbage of its own, so the memory
	// grows once; the program's own collector counts the reserve as in use, and so runs rarely.
	debug.SetGCPercent(400)
	reserve = make([]byte, 128<<20)
	reserve = nil
	runtime.GC()
	reserve = make([]byte, 24<<20)
	var world *playground.World
	keep := func(w *playground.World, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		world = w
		return w.Facts(), nil
	}
	js.Global().Set("fairlease", map[string]any{
		// read(name, bytes): the facts of a trace
		"read": answer(func(a []js.Value) (any, error) {
			text := make([]byte, a[1].Length())
			js.CopyBytesToGo(text, a[1])
			return keep(playground.Read(a[0].String(), text))
		}),
		// generate(recipe): the facts of generated jobs
		"generate": answer(func(a []js.Value) (any, error) {
			var r playground.Recipe
			if err := json.Unmarshal([]byte(a[0].String()), &r); err != nil {
				return nil, err
			}
			return keep(playground.Generate(r))
		}),
		// run(choice, scheduler, told): an outcome
		"run": answer(func(a []js.Value) (any, error) {
			c, err := choice(a[0])
			if err != nil {
				return nil, err
			}
			return world.Run(context.Background(), c, a[1].String(), func(over int) { a[2].Invoke(over) })
		}),
		// write(scores): a report
		"write": answer(func(a []js.Value) (any, error) { return playground.Write([]byte(a[0].String())) }),
		// replay(choice, seconds, see): the nodes; see(round) tells whether to go on
		"replay": answer(func(a []js.Value) (any, error) {
			c, err := choice(a[0])
			if err != nil {
				return nil, err
			}
			return nil, world.Replay(c, cluster.Span(a[1].Int())*cluster.Second, func(r *playground.Round) bool {
				text, err := json.Marshal(r)
				return err == nil && a[2].Invoke(string(text)).Bool()
			})
		}),
		// nodes(choice): the nodes of the cluster
		"nodes": answer(func(a []js.Value) (any, error) {
			c, err := choice(a[0])
			if err != nil {
				return nil, err
			}
			return playground.Nodes(c)
		}),
	})
	select {}
}

// reserve is never written, so that it takes no memory of the host.
var reserve []byte

func choice(v js.Value) (*playground.Choice, error) {
	c := &playground.Choice{}
	return c, json.Unmarshal([]byte(v.String()), c)
}

// answer makes a function of JavaScript.
func answer(f func([]js.Value) (any, error)) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any {
		out := map[string]any{}
		value, err := f(args)
		if out["value"] = value; err != nil {
			out["error"] = err.Error()
		}
		text, err := json.Marshal(out)
		if err != nil {
			return `{"error":"the result cannot be written"}`
		}
		return string(text)
	})
}
