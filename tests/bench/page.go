package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/sim/playground"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
	"github.com/fairlease/fairlease/tests/browser"
)

// onPage measures the time until Chromium shows the first content of a page of a large site: of each page the median of five visits, of
// all pages the slowest.
func onPage() error {
	site := browser.Serve(scenetest.Site{Nodes: 2000, Jobs: 10_000, Market: true, Counters: true, Tenants: 100}, true)
	defer site.Close()
	pages := map[string]string{"overview": "/", "gpus": "/gpus", "leases": "/leases", "places": "/places", "jobs": "/jobs", "market": "/market", "rounds": "/rounds",
		"job": "/jobs/" + site.Keeper.Scene().Jobs[0].Record.ID.String(), "round": fmt.Sprintf("/rounds/%d", site.Keeper.Scene().Round)}
	var visits []browser.Visit
	for range 5 {
		for name, path := range pages {
			visits = append(visits, browser.Visit{Name: name, Path: path, NoAxe: true})
		}
	}
	found, err := browser.Look("tests/browser", site.URL, "", visits)
	if err != nil {
		return fmt.Errorf("%w; make browser-deps installs what it needs", err)
	}
	paints := map[string][]float64{}
	for _, f := range found {
		paints[f.Name] = append(paints[f.Name], f.Paint)
	}
	slowest, which := 0.0, ""
	for name, all := range paints {
		slices.Sort(all)
		if median := all[len(all)/2]; median > slowest {
			slowest, which = median, name
		}
	}
	fmt.Printf("of a site with 2,000 nodes and 10,000 jobs, the slowest page is %s\n", which)
	figure("page_first_paint_ms", slowest, "ms")
	if err := firstReport(); err != nil {
		return err
	}
	return onPlayground()
}

// onPlayground measures the playground's default, a generated week on 64 GPUs under three schedulers: from the click until its report is there, in
// Chromium, and the same work on this host. It prints the size of the program.
func onPlayground() error {
	p, err := browser.ServePlayground()
	if err != nil {
		return err
	}
	defer p.Close()
	fmt.Print(p.Built)
	found, err := browser.Look("tests/browser", p.URL, "", []browser.Visit{{Name: "playground", Path: "/", NoAxe: true, Steps: []browser.Step{
		{Until: browser.Ready, Seconds: 120}, {Click: "#run", Until: browser.Done, Seconds: 300}}}})
	if err != nil {
		return err
	}
	if wrong := found[0].Wrong(); len(wrong) > 0 {
		return fmt.Errorf("the playground: %q", wrong)
	}
	figure("playground_week_s", found[0].Took[1], "s")
	w, err := playground.Generate(playground.Recipe{Nodes: "8x8", Tenants: 8, Load: 1.5, Seed: 1})
	if err != nil {
		return err
	}
	began := time.Now()
	for _, name := range playground.Schedulers() {
		if _, err := w.Run(context.Background(), &playground.Choice{Nodes: "8x8", Interval: "60s", Until: "7d"}, name, nil); err != nil {
			return err
		}
	}
	figure("playground_week_native_s", time.Since(began).Seconds(), "s")
	return nil
}
