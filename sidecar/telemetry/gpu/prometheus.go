package gpu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// PrometheusLimits are those for a Prometheus server.
var PrometheusLimits = Limits{AtOnce: 1, Timeout: 30 * time.Second, Bytes: 256 << 20}

// mostSeries is the maximum number of series in an answer.
const mostSeries = 1 << 20

// prometheus reads the counters of all nodes from one server.
type prometheus struct {
	url    string
	match  string
	web    Web
	client *http.Client
	parser *Parser
	limits Limits
	maxAge cluster.Span
	now    func() time.Time
}

// NewPrometheus makes the source that asks a Prometheus server, or another server with its API, at a URL such as
// http://prometheus:9090. match restricts the series, as in cluster="a",job="dcgm"; "" = all. Values older than maxAge
// are missing.
func NewPrometheus(address, match string, table Table, web Web, limits Limits, maxAge cluster.Span, now func() time.Time) (Source, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL of a Prometheus server; write for instance http://prometheus:9090", address)
	}
	client, err := web.client(limits)
	if err != nil {
		return nil, err
	}
	return &prometheus{url: strings.TrimSuffix(address, "/") + "/api/v1/query", match: match, web: web, client: client, parser: NewParser(table), limits: limits, maxAge: maxAge, now: now}, nil
}

// stampLabel carries the name of a counter through timestamp(), which drops it.
const stampLabel = "fairlease_counter"

// ask gives the query for all counters of a meaning: their values and, as series of their own, the times of these. An
// instant query dates all values with its own time, and gives samples up to 5 minutes old.
func (p *prometheus) ask(list []Counter) string {
	names := make([]string, len(list))
	stamps := ""
	for i, c := range list {
		names[i] = c.Name
		stamps += fmt.Sprintf(` or label_replace(timestamp(%s{%s}), "%s", "%s", "", "")`, c.Name, p.match, stampLabel, c.Name)
	}
	match := fmt.Sprintf("__name__=~%q", strings.Join(names, "|"))
	if p.match != "" {
		match += "," + p.match
	}
	return "{" + match + "}" + stamps
}

// Read implements Source.
func (p *prometheus) Read(ctx context.Context, nodes []Node) ([]Reading, error) {
	now := p.now()
	out := make([]Reading, len(nodes))
	fail := func(err error) ([]Reading, error) {
		for i := range out {
			out[i] = Reading{Err: err}
		}
		return out, err
	}
	authorize, err := p.web.authorize()
	if err != nil {
		return fail(err)
	}
	w := &wanted{parser: p.parser, of: namesOf(nodes), nodes: make([]gather, len(nodes)), newest: make([]float64, len(nodes)),
		oldest: float64(now.UnixMilli()-int64(p.maxAge)) / 1000, latest: float64(now.Add(time.Minute).UnixMilli()) / 1000}
	var body []byte
	var warnings []string
	for m, list := range p.parser.table {
		if len(list) == 0 {
			continue
		}
		form := url.Values{"query": {p.ask(list)}, "time": {strconv.FormatFloat(float64(now.UnixMilli())/1000, 'f', 3, 64)},
			"timeout": {strconv.Itoa(int(p.limits.Timeout/time.Second)) + "s"}}
		ask, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(form.Encode()))
		if err != nil {
			return fail(err)
		}
		ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		authorize(ask)
		if body, err = fetch(p.client, ask, p.limits, body); err != nil {
			return fail(err)
		}
		warned, err := w.answer(body)
		if err != nil {
			return fail(fmt.Errorf("%s, %s: %w", p.url, meaningNames[m], err))
		}
		warnings = append(warnings, warned...)
	}
	for i := range out {
		switch g := &w.nodes[i]; {
		case len(g.rows) > 0:
			out[i] = Reading{At: cluster.Instant(w.newest[i] * 1000), Rows: g.finish()}
		case w.newest[i] > 0:
			out[i].Err = fmt.Errorf("the newest sample in %s is of %s", p.url, time.Unix(int64(w.newest[i]), 0).UTC().Format(time.DateTime))
		default:
			out[i].Err = fmt.Errorf("%s has no series of it", p.url)
		}
	}
	if len(warnings) > 0 {
		return out, fmt.Errorf("%s warns: %.200s", p.url, warnings[0])
	}
	return out, nil
}

// wanted collects the answers of all queries of a look, by node.
type wanted struct {
	parser         *Parser
	of             names
	nodes          []gather
	newest         []float64 // time of the newest sample, by node; unix seconds
	oldest, latest float64   // times that are believed
}

// point is one value of a GPU's counter, and its time.
type point struct {
	x     sample
	node  int
	stamp float64 // unix seconds; NaN = unknown
}

// answer reads the answer of one query, and gives the server's warnings. An answer that is cut off or malformed is an
// error. Of two series for the same counter of a GPU, the newer one counts.
func (w *wanted) answer(body []byte) (warnings []string, err error) {
	var a struct {
		Status   string   `json:"status"`
		Error    string   `json:"error"`
		Warnings []string `json:"warnings"`
		Data     struct {
			Type   string       `json:"resultType"`
			Result model.Vector `json:"result"`
		} `json:"data"`
	}
	// Series are counted before they are read: each takes several times its text.
	if n := bytes.Count(body, []byte(`"metric"`)); n > mostSeries {
		return nil, fmt.Errorf("more than %d series; restrict them with telemetry.gpu.match", mostSeries)
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("the answer is not that of a Prometheus server: %w", err)
	}
	if a.Status != "success" || a.Data.Type != "vector" {
		return nil, fmt.Errorf("no vector, but status %.40q with %.40q: %.200s", a.Status, a.Data.Type, a.Error)
	}
	points := map[string]*point{} // by counter and GPU
	var order []*point
	stamps := map[string]float64{} // by counter and all labels
	var values []*model.Sample
	for _, r := range a.Data.Result {
		if r == nil || r.Metric == nil || r.Timestamp == 0 || r.Histogram != nil {
			return nil, errors.New("a series has no labels, or no value")
		}
		name, isStamp := r.Metric[stampLabel]
		if !isStamp {
			values = append(values, r)
			continue
		}
		delete(r.Metric, stampLabel)
		r.Metric[model.MetricNameLabel] = name
		stamps[r.Metric.String()] = float64(r.Value)
	}
	for _, r := range values {
		name := string(r.Metric[model.MetricNameLabel])
		e := w.parser.entries[name]
		node := w.node(r.Metric)
		if e == nil || node < 0 {
			continue
		}
		x := point{node: node, x: sample{entry: e, value: float64(r.Value), instance: []byte(r.Metric["GPU_I_ID"]), model: []byte(r.Metric["modelName"]), job: []byte(r.Metric["hpc_job"])}}
		text, ok := r.Metric["gpu"]
		if !ok {
			text = r.Metric["minor_number"]
		}
		if x.x.index, err = index([]byte(text)); err != nil {
			continue // of a CPU or a switch
		}
		stamp, ok := stamps[r.Metric.String()]
		if !ok || !(stamp <= w.latest) {
			continue // its age is unknown
		}
		x.stamp = stamp
		w.newest[node] = max(w.newest[node], stamp)
		if stamp < w.oldest {
			continue
		}
		gpu := fmt.Sprintf("%s %d %d %s %s", name, node, x.x.index, x.x.instance, x.x.job)
		if was, ok := points[gpu]; !ok {
			points[gpu] = &x
			order = append(order, &x)
		} else if stamp > was.stamp {
			*was = x
		} else if stamp == was.stamp && was.x.value != x.x.value {
			was.x.value = math.NaN() // two values: neither is believed
		}
	}
	for _, x := range order {
		if err := w.nodes[x.node].add(&x.x); err != nil {
			return nil, err
		}
	}
	return a.Warnings, nil
}

// node gives the node that labels name; -1 = none that is known. Labels that collide with those of the target are
// called exported_….
func (w *wanted) node(labels model.Metric) int {
	for _, label := range []model.LabelName{"exported_hostname", "exported_Hostname", "hostname", "Hostname", "exported_node", "node", "instance"} {
		name := string(labels[label])
		if name == "" {
			continue
		}
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		if i := w.of.find(name); i >= 0 {
			return i
		}
	}
	return -1
}
