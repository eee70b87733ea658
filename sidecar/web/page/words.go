package page

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

var functions = template.FuncMap{
	"gpus":     gpus,
	"count":    anyCount,
	"span":     cluster.Span.String,
	"hours":    func(g cluster.GPUTime) string { return hours(g.Hours()) },
	"rho":      view.Rho,
	"jobrho":   view.JobRho,
	"owed":     owed,
	"percent":  func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) },
	"nodes":    func(list []string) string { return hostlist.Compress(list) },
	"job":      JobPath,
	"jobkey":   JobKeyPath,
	"place":    func(name string) string { return "/places/" + url.PathEscape(name) },
	"plural":   view.Plural,
	"fixed":    func(digits int, x float64) string { return strconv.FormatFloat(x, 'f', digits, 64) },
	"micro":    func(g cluster.MicroGPU) string { return gpus(float64(g) / float64(cluster.WholeGPU)) },
	"duration": func(d time.Duration) string { return cluster.SpanOf(d).String() },
	"reason":   func(code string) string { return explain.Short(cluster.Code(code)) },
	"spaced":   func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"promised": func() int { return forecast.Promised },
	"gib":      func(b int64) string { return fmt.Sprintf("%.0f GiB", float64(b)/(1<<30)) },
}

// gpus writes a number of GPUs with at most one digit after the point.
func gpus(n float64) string {
	if r := math.Round(n*10) / 10; r != math.Trunc(r) && math.Abs(r) < 1000 {
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return count(int(math.Round(n)))
}

// count writes a whole number with a comma between thousands.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// anyCount writes a whole number, or a number of GPUs with all its digits.
func anyCount(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return count(n), nil
	case cluster.GPUCount:
		whole, part, parted := strings.Cut(n.String(), ".")
		k, err := strconv.Atoi(whole)
		if whole = count(k); parted {
			whole += "." + part
		}
		return whole, err
	}
	return "", fmt.Errorf("%T is no number to count", n)
}

// owed writes the GPU hours of a debt; "-" if it is so small that it is written as 0.
func owed(g cluster.GPUTime) string {
	if text := hours(g.Hours()); text != "0" && text != "-0" {
		return text
	}
	return "-"
}

// hours writes GPU hours, with more digits of few.
func hours(h float64) string {
	switch size := math.Abs(h); {
	case size >= 100:
		return count(int(math.Round(h)))
	case size >= 1:
		return gpus(h)
	}
	return strconv.FormatFloat(math.Round(h*1000)/1000, 'f', -1, 64)
}
