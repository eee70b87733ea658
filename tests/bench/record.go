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

// losses tells which measured figures of time and memory are larger than those of a recorded run, by more than runs differ. CPU time counts
// where it is known.
func losses(recorded, machine string, measured []string) (out []string) {
	was := map[string]float64{}
	for line := range strings.Lines(recorded) {
		if on, ok := strings.CutPrefix(strings.TrimSpace(line), "machine "); ok && on != machine {
			return []string{fmt.Sprintf("not compared with the recorded run: that was on another machine (%s), this is %s", on, machine)}
		}
		if name, value, _, ok := cost(line); ok {
			was[name] = value
		}
	}
	for _, line := range measured {
		name, value, unit, ok := cost(line)
		if old, known := was[name]; ok && known && value > allowed*old {
			out = append(out, fmt.Sprintf("worse than recorded: %s %.4g %s, was %.4g: %.2f times", name, value, unit, old, value/old))
		}
	}
	if out == nil {
		out = []string{fmt.Sprintf("no figure is worse than in the recorded run by more than %.0f %%", 100*(allowed-1))}
	}
	return out
}

// cost reads a line of a figure that is worse if it is larger: of time, memory, or a ratio to an older commit.
func cost(line string) (name string, value float64, unit string, ok bool) {
	f := strings.Fields(line)
	if len(f) < 4 || f[0] != "figure" {
		return "", 0, "", false
	}
	name, number, unit := f[1], f[2], f[3]
	switch unit {
	case "s", "ms", "us", "MiB", "x":
	default:
		return "", 0, "", false
	}
	if len(f) == 6 && f[4] == "cpu" {
		number, unit = f[5], unit+" of CPU"
	}
	value, err := strconv.ParseFloat(number, 64)
	return name, value, unit, err == nil
}
