package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// These tests check that an order for a job stays with the job that had the id when it was given.

// ended gives the texts of the events that tell of the ends of orders.
func (w *world) ended() (texts []string) {
	for _, r := range w.reports {
		for _, e := range r.Plan.Events {
			if e.Kind == "override_ended" {
				texts = append(texts, e.Text)
			}
		}
	}
	return texts
}

// inForce gives the number of orders in force.
func (w *world) inForce() int {
	all, err := w.journal.Overrides(w.t.Context(), w.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return len(all)
}

// newest gives the reason of the last job that got an id.
func (w *world) newest(id cluster.JobID) (reason cluster.Reason) {
	for r := range w.Last.State.All() {
		for _, v := range w.Last.Statuses {
			if r.ID == id && v.Job == r.Key {
				reason = v.Reason
			}
		}
	}
	return reason
}

// sweep is an array of one-GPU tasks that run for ever.
func (w *world) sweep(tenant string, n int) []cluster.JobID {
	return w.SubmitArray(sim.Work{Name: "sweep", User: tenant + "_user", Account: tenant, Partition: "gpu", Request: simtest.Gang(1), Runs: forever}, n)
}

// Slurm loses its state and gives ids from 1 again: an order for a job, a task or an array does not pass to the job that gets the id, be it
// another user's or the same user's.
func TestAnOrderDoesNotPassToTheNextJobWithTheID(t *testing.T) {
	for _, kind := range []cluster.OverrideKind{cluster.Exempt, cluster.Boost, cluster.Freeze} {
		for _, name := range []string{"1", "1_1", "1 array"} {
			for _, tenant := range []string{"a", "b"} {
				t.Run(fmt.Sprintf("%s %s to %s", kind, name, tenant), func(t *testing.T) {
					nodes := simtest.Nodes("n", "v100", 1, 2)
					w := newWorldOn(t, simtest.Product(), nodes, "a", "b")
					submit := func(tenant string) []cluster.JobID {
						if name == "1" {
							return w.Submit(tenant, 1, 1, forever)
						}
						return w.sweep(tenant, 2)
					}
					submit("a")
					w.Run(minute)
					id, _, _ := strings.Cut(name, " ")
					w.order(kind, "job", id, 9)
					w.Run(minute)
					if w.inForce() != 1 || len(w.ended()) > 0 {
						t.Fatal("the order has ended while its job runs")
					}
					w.coldStart(nodes, "a", "b")
					ids := submit(tenant)
					if ids[0].ID != 1 {
						t.Fatal("the id was not reused")
					}
					w.Run(10 * second)
					told := w.ended()
					if len(told) != 1 || w.inForce() != 0 {
						t.Fatalf("%d orders are in force, and it is said %q", w.inForce(), told)
					}
					if want := fmt.Sprintf("override 1 (%s) has ended: job %s of a_user has ended, and Slurm gave its id to a job of %s_user", kind, id, tenant); told[0] != want {
						t.Errorf("it is said %q, want %q", told[0], want)
					}
					w.Run(minute)
					for _, id := range ids {
						w.state(id, cluster.Running)
						if r := w.newest(id); r.Note != "" || r.Code == cluster.ReasonExempt || r.Code == cluster.ReasonFrozen {
							t.Errorf("the order has passed to job %s: %+v", id, r)
						}
					}
				})
			}
		}
	}
}

// Until the round in which the order ends it does not count for the job that has the id, either.
func TestAnOrderMeansOneJob(t *testing.T) {
	o := cluster.Override{Kind: cluster.Freeze, Scope: "job", Name: "5", Until: 100, Job: 7, User: "ann", Submit: 50}
	for _, c := range []struct {
		name  string
		r     cluster.Record
		means bool
	}{
		{"its job", cluster.Record{Key: 7, ID: cluster.JobID{ID: 5}, User: "ann", Submit: 50}, true},
		{"its job, requeued", cluster.Record{Key: 7, ID: cluster.JobID{ID: 5}, User: "ann", Submit: 70, Restarts: 1}, true},
		{"a later job of the user", cluster.Record{Key: 9, ID: cluster.JobID{ID: 5}, User: "ann", Submit: 60}, false},
		{"a job of another user", cluster.Record{Key: 9, ID: cluster.JobID{ID: 5}, User: "bob", Submit: 50}, false},
		{"a task of its array", cluster.Record{Key: 6, ID: cluster.TaskID(5, 0), User: "ann", Submit: 50}, true},
		{"a task that came to light later", cluster.Record{Key: 20, ID: cluster.TaskID(5, 900), User: "ann", Submit: 50}, true},
		{"a task of a later array", cluster.Record{Key: 20, ID: cluster.TaskID(5, 900), User: "ann", Submit: 60}, false},
		{"another id", cluster.Record{Key: 7, ID: cluster.JobID{ID: 6}, User: "ann", Submit: 50}, false},
	} {
		index := cluster.OverridesOf([]cluster.Override{o}, 10)
		if o, _ := index.Of(&c.r); (o != nil) != c.means {
			t.Errorf("%s: %v", c.name, o)
		}
	}
	if index := cluster.OverridesOf([]cluster.Override{o}, 100); !index.None() {
		t.Error("an order counts after its end")
	}
}

// Requeues do not end an order: Slurm gives the job another submit time, but it is the same job.
func TestAnOrderSurvivesRequeues(t *testing.T) {
	for what, requeue := range map[string]func(w *world, id cluster.JobID){
		"a node that fails": func(w *world, id cluster.JobID) { w.SetNode("n01", "down"); w.Run(minute); w.SetNode("n01", "") },
		"its end of lease":  func(w *world, id cluster.JobID) { w.order(cluster.Freeze, "tenant", "a", 1); w.Run(2 * hour) },
	} {
		w := newWorld(t, simtest.Product(), []int{2}, "a")
		id := w.Submit("a", 1, 1, forever)[0]
		w.Run(minute)
		w.order(cluster.Boost, "job", id.String(), 9)
		submitted := w.Record(id).Submit
		w.Run(20 * minute)
		if what == "its end of lease" { // a job's own order would count before its tenant's
			w.journal.Override(cluster.Override{Kind: cluster.Freeze, Scope: "job", Name: id.String(), Job: w.Record(id).Key, User: "a_user", Submit: submitted, Until: w.Now().Add(hour), Reason: "because"})
		}
		requeue(w, id)
		w.Run(10 * minute)
		if w.Job(id).Restarts == 0 || w.Record(id).Submit == submitted {
			t.Fatalf("%s: the job was not requeued", what)
		}
		if told := w.ended(); len(told) > 0 || w.inForce() != 1 {
			t.Errorf("%s: %d orders in force, %q", what, w.inForce(), told)
		}
	}
}

// An order whose job has ended ends when the job is forgotten, since Slurm can bring a finished job back for a while.
func TestAnOrderEndsAfterItsJob(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2}, "a")
	ids := w.Submit("a", 2, 1, forever)
	w.Run(minute)
	w.order(cluster.Exempt, "job", ids[0].String(), 9)
	w.order(cluster.Exempt, "user", "a_user", 9)
	w.Cancel(ids[0])
	w.Run(30 * minute)
	if w.inForce() != 2 {
		t.Error("the order ended with its job, at once")
	}
	w.Run(2 * hour)
	if told := w.ended(); len(told) != 1 || told[0] != "override 1 (exempt) has ended: job 1 of a_user has ended" || w.inForce() != 1 {
		t.Errorf("%d orders in force, %q", w.inForce(), told)
	}
}

// An order for a whole array counts for tasks that are split off later, and for those that come to light later: fairlease sees the first
// waiting tasks of a large array only.
func TestAnOrderForAnArrayCountsForLaterTasks(t *testing.T) {
	for _, kind := range []cluster.OverrideKind{cluster.Exempt, cluster.Freeze} {
		w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
		seen := int32(2)
		w.alter = func(s *cluster.Observation) {
			var jobs []cluster.Job
			for _, j := range s.Jobs {
				if i, _ := j.ID.Index(); i < seen {
					jobs = append(jobs, j)
				}
			}
			s.Jobs = jobs
		}
		w.Rules.ExcludeUsers = []string{"b_user"}
		w.submit("b", 4, 10*minute, nil) // no task can start
		w.Run(minute)
		tasks := w.sweep("a", 6)
		w.Run(minute)
		w.order(kind, "job", tasks[0].Array().String(), 20)
		seen = 6
		w.Run(30 * minute)
		running := 0
		for _, id := range tasks {
			w.Record(id) // it is known
			if w.Job(id).State == cluster.Running {
				running++
				w.why(id, cluster.ReasonExempt)
			}
			if kind == cluster.Freeze {
				w.why(id, cluster.ReasonFrozen)
			}
		}
		if want := map[cluster.OverrideKind]int{cluster.Exempt: 4}[kind]; running != want {
			t.Errorf("%s: %d tasks run, want %d", kind, running, want)
		}
		for _, id := range tasks[:4] { // the first ones end; the others are still the order's
			w.Cancel(id)
		}
		w.Run(3 * hour)
		if told := w.ended(); len(told) > 0 {
			t.Errorf("%s: %q", kind, told)
		}
		for _, id := range tasks[4:] {
			w.why(id, map[cluster.OverrideKind]cluster.Code{cluster.Exempt: cluster.ReasonExempt, cluster.Freeze: cluster.ReasonFrozen}[kind])
		}
	}
}
