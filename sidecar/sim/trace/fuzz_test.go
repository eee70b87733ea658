package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// held decodes arbitrary bytes. The decoder must not panic or use unbounded memory; accepted
// traces must be consistent, and survive a round trip.
func held(t *testing.T, data []byte, f Format) {
	for _, zone := range []*time.Location{nil, time.FixedZone("", -5*3600)} {
		tr, err := read(bytes.NewReader(data), "x", Options{Format: f, Zone: zone, Named: 5})
		if err != nil {
			if tr != nil || err.Error() == "" {
				t.Errorf("%v with %v", tr, err)
			}
			continue
		}
		balanced(t, tr)
		rewritten(t, tr)
	}
}

func seed(f *testing.F, paths ...string) {
	for _, path := range paths {
		data, err := os.ReadFile(filepath.Join("testdata", path))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

func FuzzPlain(f *testing.F) {
	seed(f, "plain.csv")
	f.Add([]byte("job_id,tenant,user,gpus,submit_time,duration_s,state,name,nodes,cpus,memory_mb,model,kind,limit_s\n\"a\"\"\",t,u,4,0.5,1e3,FAILED,n,1,2,3,v100,k,60\nb,t,,1,,,,,,,,,,"))
	f.Fuzz(func(t *testing.T, data []byte) { held(t, data, FormatPlain) })
}

func FuzzHelios(f *testing.F) {
	seed(f, "helios.csv")
	f.Fuzz(func(t *testing.T, data []byte) { held(t, data, FormatHelios) })
}

func FuzzPhilly(f *testing.F) {
	seed(f, "philly.json")
	f.Add([]byte(`[{"jobid":"a","vc":"v","submitted_time":"2017-10-07 01:11:39","attempts":[{"start_time":"2017-10-07 01:12:09","end_time":"2017-10-07 01:13:23","detail":[{"ip":"m","gpus":["0"]}]},{"detail":null}]}]`))
	f.Fuzz(func(t *testing.T, data []byte) { held(t, data, FormatPhilly) })
}

func FuzzSacct(f *testing.F) {
	seed(f, "sacct.txt")
	f.Add([]byte("JobIDRaw|Account|Submit|Start|End|ReqTRES|Timelimit|\n7|a|1790000000|2026-10-01T00:00:00|Unknown|gres/gpu:a100=8|1-00:00:00|\n"))
	f.Add([]byte("jobid|user|submit|elapsed|alloctres\n7|a|2026-10-01T00:00:00|1-00:00:01.5|gres/gpu=1,mem=3T\n7|a|2026-10-02T00:00:00|00:00:01|gres/gpu=1\n"))
	f.Fuzz(func(t *testing.T, data []byte) { held(t, data, FormatSacct) })
}

func FuzzSlurmdb(f *testing.F) {
	f.Add([]byte(`{"jobs":[{"job_id":7,"user":"u","account":"a","state":{"current":["PENDING","REQUEUED"]},"restart_cnt":0,"array":{"job_id":3,"task_id":{"set":true,"number":2}},"time":{"submission":5,"start":6,"elapsed":4,"limit":{"set":true,"number":9}},"tres":{"allocated":[{"type":"gres","name":"gpu","count":2}]}}]}`))
	f.Add([]byte(`{"jobs":[{"job_id":"7","user":"u","state":["FAILED"],"time":{"submission":{"number":5},"start":6,"end":9},"tres":{"requested":[{"type":"gres","name":"gpu:a","count":{"set":true,"number":2}}]}},{}],"errors":[]}`))
	f.Add([]byte(`{"jobs"`))
	f.Fuzz(func(t *testing.T, data []byte) { held(t, data, FormatSlurmdb) })
}

// FuzzDetect lets the content determine the format.
func FuzzDetect(f *testing.F) {
	seed(f, "plain.csv", "helios.csv", "philly.json", "sacct.txt", "pai/pai_task_table.csv")
	f.Add(zip([]byte("job_id,tenant,gpus,submit_time,duration_s\na,t,1,2,3\n")))
	f.Add([]byte("\xef\xbb\xbfjob_id,gpus\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) { held(t, data, "") })
}

func FuzzPAI(f *testing.F) {
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata/pai", name))
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	f.Add(read("pai_job_table.csv"), read("pai_task_table.csv"))
	f.Add([]byte("a,i,u,Terminated,0,9\n"), []byte("a,w,1,Terminated,0.0,5.0,,,12.5,T4\na,w2,1e9,Terminated,0.0,5.0,,,1e9,T4\n"))
	f.Fuzz(func(t *testing.T, jobs, tasks []byte) {
		open := func(data []byte) *table {
			s, err := newSource(bytes.NewReader(data), "x", Options{Format: FormatPAI})
			if err != nil {
				return nil
			}
			return s.table()
		}
		j, k := open(jobs), open(tasks)
		if j == nil || k == nil {
			return
		}
		tr, err := readPAI(j, k, newCollector(Options{}))
		if err != nil {
			return
		}
		balanced(t, tr)
		rewritten(t, tr)
	})
}
