package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// recordedFull gives a server with n waiting jobs, as Slurm writes them (8 kB each).
func recordedFull(t testing.TB, n int) (*recorded, []byte) {
	data, err := os.ReadFile("testdata/jobs-26.05-v0.0.44.json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Jobs []map[string]any }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	one := list.Jobs[2]
	var full, states bytes.Buffer
	full.WriteString(`{"jobs":[`)
	states.WriteString(`{"jobs":[`)
	for i := 1; i <= n; i++ {
		one["job_id"], one["name"], one["user_name"] = i, fmt.Sprintf("train-%d", i), fmt.Sprintf("user%d", i%100)
		b, err := json.MarshalIndent(one, "    ", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if i > 1 {
			full.WriteString(",")
			states.WriteString(",")
		}
		full.WriteString("\n    ")
		full.Write(b)
		fmt.Fprintf(&states, "\n    {\n      \"job_id\": \"%d\",\n      \"state\": [\n        \"PENDING\"\n      ]\n    }", i)
	}
	full.WriteString("\n  ],\"last_update\":900,\"errors\":[]}")
	states.WriteString("\n  ],\"errors\":[]}")
	f := newRecorded(t, 44)
	f.on("GET /slurm/v0.0.44/jobs/", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(full.Bytes()) })
	f.on("GET /slurm/v0.0.44/jobs/state/", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(states.Bytes()) })
	return f, full.Bytes()
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFullLook is an Observe of 10,000 waiting jobs that reads all records. CPU time and
// memory include serving the list from memory.
func BenchmarkFullLook(b *testing.B) {
	f, full := recordedFull(b, 10_000)
	c := f.client()
	b.SetBytes(int64(len(full)))
	before := cpu()
	for b.Loop() {
		c.seen.jobs.ask, c.seen.fullAt = 0, 0
		if s := f.see(c); len(s.Jobs) != 10_000 {
			b.Fatalf("%d jobs", len(s.Jobs))
		}
	}
	b.ReportMetric(float64((cpu()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric((float64(m.HeapAlloc)-float64(len(full)))/(1<<20), "kept-MiB")
	runtime.KeepAlive(c)
}

// BenchmarkQuietLook is an Observe that finds 10,000 waiting jobs unchanged.
func BenchmarkQuietLook(b *testing.B) {
	f, _ := recordedFull(b, 10_000)
	c := f.client()
	f.see(c)
	before := cpu()
	for b.Loop() {
		if s := f.see(c); !s.Unchanged {
			b.Fatal("changed")
		}
	}
	b.ReportMetric(float64((cpu()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
