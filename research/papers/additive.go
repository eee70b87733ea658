package papers

import "github.com/fairlease/fairlease/sidecar/cluster"

// additive predicts run times by an additive model, like Lucid's Workload Estimate Model (§3.5): the run time is a constant
// plus a term for each feature of the job and for pairs of them (GA2M), so that each term can be read. The authors fit it to
// months of history by boosting. Here it is fitted to what has ended so far, by sweeps over the terms: each is the mean of
// what the others leave unexplained (backfitting).
type additive struct {
	jobs   []observation
	fitted int // jobs at the last fit
	mean   float64
	terms  [len(features)]map[feature]float64
}

// observation is a job that has ended.
type observation struct {
	of  [len(features)]feature
	ran float64
}

// feature is the value of a feature, or of two.
type feature struct {
	a, b string
	n    int
}

// features are those of Lucid that traces have: user, virtual cluster, GPUs, command, hour of the day, and pairs.
var features = [...]func(*cluster.Job) feature{
	func(j *cluster.Job) feature { return feature{n: j.Request.Size.Devices} },
	func(j *cluster.Job) feature { return feature{a: j.Account} },
	func(j *cluster.Job) feature { return feature{a: j.User} },
	func(j *cluster.Job) feature { return feature{a: commandOf(j)} },
	func(j *cluster.Job) feature { return feature{n: int(j.Submit / cluster.Instant(cluster.Hour) % 24)} },
	func(j *cluster.Job) feature { return feature{a: j.User, n: j.Request.Size.Devices} },
	func(j *cluster.Job) feature { return feature{a: j.User, b: commandOf(j)} },
}

// The fit: sweeps over the terms, and the weight of the assumption that a value has no effect, in jobs.
const (
	sweeps = 5
	doubt  = 2
)

func featuresOf(j *cluster.Job) (of [len(features)]feature) {
	for f := range features {
		of[f] = features[f](j)
	}
	return of
}

// add counts a job that has ended.
func (m *additive) add(j *cluster.Job, ran cluster.Span) {
	m.jobs = append(m.jobs, observation{featuresOf(j), float64(ran)})
}

// fit fits the model if a tenth more jobs have ended since the last time.
func (m *additive) fit() {
	if len(m.jobs) <= m.fitted+m.fitted/10 {
		return
	}
	m.fitted = len(m.jobs)
	sum := 0.0
	for i := range m.jobs {
		sum += m.jobs[i].ran
	}
	m.mean = sum / float64(len(m.jobs))
	left := make([]float64, len(m.jobs)) // unexplained
	for i := range left {
		left[i] = m.jobs[i].ran - m.mean
	}
	m.terms = [len(features)]map[feature]float64{}
	for range sweeps {
		for f := range m.terms {
			m.terms[f] = m.sweep(f, left)
		}
	}
}

// sweep fits one term anew, and updates what is left.
func (m *additive) sweep(f int, left []float64) map[feature]float64 {
	type total struct{ sum, n float64 }
	totals, old := map[feature]total{}, m.terms[f]
	for i := range m.jobs {
		of := m.jobs[i].of[f]
		t := totals[of]
		totals[of] = total{t.sum + left[i] + old[of], t.n + 1}
	}
	term := make(map[feature]float64, len(totals))
	for of, t := range totals {
		term[of] = t.sum / (t.n + doubt)
	}
	for i := range m.jobs {
		of := m.jobs[i].of[f]
		left[i] += old[of] - term[of]
	}
	return term
}

// expect predicts a job's run time.
func (m *additive) expect(j *cluster.Job) cluster.Span {
	if m.fitted == 0 {
		return guess
	}
	ran, of := m.mean, featuresOf(j)
	for f := range m.terms {
		ran += m.terms[f][of[f]]
	}
	if ran < 0 {
		return 1000 * cluster.Second // as in the authors' code
	}
	return cluster.Span(ran)
}
