//go:build !js

package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/sim/report"
)

//go:embed page
var page embed.FS

// program is this package for a browser.
const program = "github.com/fairlease/fairlease/sidecar/cmd/fairlease-playground"

func main() {
	out := flag.String("o", "out/playground", "`FOLDER` to write; any server of static files can offer it")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "fairlease-playground:", err)
		os.Exit(1)
	}
}

// write builds the program for a browser and writes the page's files.
func write(out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	wasm, small, err := compiled()
	if err != nil {
		return err
	}
	runtime, err := runtimeScript()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"fairlease.wasm.gz": small,
		"wasm_exec.js":      runtime,
		"charts.js":         []byte(chart.Script()),
		"report.css":        []byte(report.Style()),
		"uplot-license.txt": []byte(chart.License()),
	}
	own, err := fs.ReadDir(page, "page")
	if err != nil {
		return err
	}
	for _, f := range own {
		if files[f.Name()], err = page.ReadFile("page/" + f.Name()); err != nil {
			return err
		}
	}
	sum := 0
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
		sum += len(text)
	}
	fmt.Printf("written: %s, %d files of %.1f MiB; the program has %.1f MiB, %.1f MiB gzipped\n", out, len(files), mib(sum), mib(wasm), mib(len(small)))
	return nil
}

func mib(n int) float64 { return float64(n) / (1 << 20) }

// compiled gives the size of the program for a browser, and the program gzipped.
func compiled() (size int, small []byte, err error) {
	dir, err := os.MkdirTemp("", "fairlease-playground")
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "fairlease.wasm")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, program)
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 0, nil, fmt.Errorf("building %s for a browser: %w", program, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, nil, err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return 0, nil, err
	}
	if _, err := z.Write(text); err != nil {
		return 0, nil, err
	}
	if err := z.Close(); err != nil {
		return 0, nil, err
	}
	return len(text), b.Bytes(), nil
}

// runtimeScript gives Go's own script that starts a program in a browser.
func runtimeScript() ([]byte, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("asking go for its folder: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib/wasm/wasm_exec.js"))
}
