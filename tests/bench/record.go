package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// figuresFile has the last recorded run, between fences.
const (
	figuresFile = "docs/figures.md"
	fenceBegin  = "```bench\n"
	fenceEnd    = "```\n"
)

// compare says which figures are worse than those of the recorded run, or records those measured.
func compare(record bool) error {
	page, err := os.ReadFile(figuresFile)
	if os.IsNotExist(err) {
		return nil // not in the project's folder
	} else if err != nil {
		return err
	}
	before, rest, _ := strings.Cut(string(page), fenceBegin)
	was, after, ok := strings.Cut(rest, fenceEnd)
	if !ok {
		return fmt.Errorf("%s has no recorded run", figuresFile)
	}
	if !record {
		for _, line := range losses(was, machine(), measured) {
			fmt.Println(line)
		}
		return nil
	}
	tip, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return err
	}
	now := fmt.Sprintf("machine %s\ntip %s%s\n", machine(), tip, strings.Join(measured, "\n"))
	return os.WriteFile(figuresFile, []byte(before+fenceBegin+now+fenceEnd+after), 0o644)
}

// allowed is by what factor a figure may be larger than the recorded one: runs of one commit differ by that much.
const allowed = 1.15

// losses tells which measured figures of CPU time, allocations and memory are larger than those of a recorded run, by more than runs differ.
func losses(recorded, machine string, measured []string) (out []string) {
	for line := range strings.Lines(recorded) {
		if on, ok := strings.CutPrefix(strings.TrimSpace(line), "machine "); ok && on != machine {
			return []string{fmt.Sprintf("not compared with the recorded run: that was on another machine (%s), this is %s", on, machine)}
		}
	}
	was := map[string]float64{}
	for _, c := range costs(strings.Split(recorded, "\n")) {
		was[c.name] = c.value
	}
	for _, c := range costs(measured) {
		if old, known := was[c.name]; known && c.value > allowed*old {
			out = append(out, fmt.Sprintf("worse than recorded: %s %.4g%s, was %.4g: %.2f times", c.name, c.value, c.unit, old, c.value/old))
		}
	}
	if out == nil {
		out = []string{fmt.Sprintf("no figure is worse than in the recorded run by more than %.0f %%", 100*(allowed-1))}
	}
	return out
}

// cost is a value that is worse if it is larger: of time, allocations, memory, or a ratio to an older commit.
type cost struct {
	name, unit string
	value      float64
}

// costs reads those in lines of figures. The allocations of a figure have its name and their unit. Wall time is left out.
func costs(lines []string) (out []cost) {
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "figure" || strings.Contains(f[1], wall) {
			continue
		}
		add := func(name, number, unit string) {
			if value, err := strconv.ParseFloat(number, 64); err == nil {
				out = append(out, cost{name, unit, value})
			}
		}
		switch f[3] {
		case "s", "ms", "us", "MiB", "x":
			add(f[1], f[2], " "+f[3])
		}
		if len(f) == 8 && f[4] == "allocs" && f[6] == "mib" {
			add(f[1]+" allocations", f[5], "")
			add(f[1]+" allocated", f[7], " MiB")
		}
	}
	return out
}
