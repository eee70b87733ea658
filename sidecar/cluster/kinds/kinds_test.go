package kinds

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func script(text string) Command { return Command{Script: text} }

func TestLabel(t *testing.T) {
	line := func(text string) Command { return Command{Line: text, Dir: "/home/ann/proj"} }
	same := [][]Command{
		{script("/home/ann/proj/train.sh --lr 0.1 --seed 3"), script("/home/ann/proj/train.sh --lr 1e-4 --seed 17"), script("/home/ann/proj/train.sh --lr 2 --seed 0"),
			line("sbatch --gres=gpu:2 -p fast train.sh --lr 0.3 --seed 4"), line("sbatch -J run-17 --exclusive --time 2:00 ./train.sh --lr 0.3 --seed 4"),
			line("sbatch /home/ann/proj/train.sh --lr=0.3 --seed=4")},
		{script("/s/run_0412/train.sh"), script("/s/run_7/train.sh")},
		{script("/s/train.py --out=/data/2026-11-26_10-33-21/x"), script("/s/train.py --out=/data/2026-1-2_1-3-2/x"), script("/s/train.py --out=/data/20261126T103321Z/x")},
		{script("/s/train.py --resume 3fa9c17b/last"), script("/s/train.py --resume 90b1ffe2/last")},
		{script("/s/a.sh 1b4e28ba-2fa1-11d2-883f-0016d3cca427"), script("/s/a.sh 6fa459ea-ee8a-3ca4-894e-db77e160355e")},
		{script("/s/a.sh seed7"), script("/s/a.sh seed12")},
		{script("/s/a.sh optimizer.lr=0.1 seed=3"), script("/s/a.sh optimizer.lr=3e-4 seed=44")},
		{line("sbatch -N1 --wrap python train.py --seed 3"), line("sbatch --gpus=1 --wrap=python train.py --seed 9")},
		{line("srun --pty -p gpu python train.py --seed 3"), line("srun -pgpu -n 1 python train.py --seed 4")},
	}
	seen := map[string]int{}
	for i, group := range same {
		for _, c := range group {
			label := c.Label()
			if label == "" || label != group[0].Label() || cluster.CleanName(label) != label {
				t.Errorf("%+v is %q, others like it %q", c, label, group[0].Label())
			}
			if other, ok := seen[label]; ok && other != i {
				t.Errorf("%+v is %q, as in group %d", c, label, other)
			}
			seen[label] = i
		}
	}
	other := []Command{
		script("/s/train.py --model resnet50"), script("/s/train.py --model resnet18"), script("/s/train.py --model vgg16"),
		script("/s/train.py --epochs 90"), script("/s/train.py --epochs=10"),
		script("/s/train.py --per_device_train_batch_size 32"), script("/s/train.py --per_device_train_batch_size 64"), script("/s/train.py trainer.max_epochs=3"),
		script("/s/bert/train.py"), script("/s/gpt2/train.py"), script("/s/eval.py"),
	}
	labels := map[string]Command{}
	for _, c := range other {
		if was, ok := labels[c.Label()]; ok {
			t.Errorf("%+v and %+v are both %q", was, c, c.Label())
		}
		labels[c.Label()] = c
	}
	for _, c := range []Command{{}, line("sbatch"), line("sbatch --gres=gpu:1"), line("sbatch --wrap"), {Script: "  "}} {
		if got := c.Label(); got != "" {
			t.Errorf("%+v is %q", c, got)
		}
	}
	if got := line("sbatch --wrap=python train.py --lr 3").Label(); !strings.HasPrefix(got, "train.py:") {
		t.Errorf("a wrapped script is %q", got)
	}
}

// Property: seeds, dates and ids never change a label, and a label is a clean name of bounded length.
func TestRunsOfACommandAreAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	programs := []string{"train.sh", "finetune.py", "runs/go.sh", "resnet50/main.py"}
	options := []string{"--seed %d", "--lr 0.%d", "--out /data/run_%d", "seed=%d", "--tag exp%d", "--date 2026-01-%d"}
	for range 500 {
		p := "/home/u/" + programs[rng.IntN(len(programs))]
		a, b := p, p
		for range rng.IntN(5) {
			o := options[rng.IntN(len(options))]
			a += " " + strings.ReplaceAll(o, "%d", draw(rng))
			b += " " + strings.ReplaceAll(o, "%d", draw(rng))
		}
		if script(a).Label() != script(b).Label() {
			t.Fatalf("%q and %q differ: %s, %s", a, b, script(a).Label(), script(b).Label())
		}
		if script(a).Label() == script(a+" --extra").Label() {
			t.Fatalf("%q is like the same with another option", a)
		}
	}
}

func draw(rng *rand.Rand) string {
	digits := make([]byte, 1+rng.IntN(6))
	for i := range digits {
		digits[i] = byte('0' + rng.IntN(10))
	}
	return string(digits)
}

// FuzzLabel reads arbitrary commands: a label is a clean, bounded name, and depends on nothing else.
func FuzzLabel(f *testing.F) {
	f.Add("/a/train.sh --lr 0.1 --epochs 3", "sbatch -p x train.sh", "/a")
	f.Add("", "sbatch --wrap python x.py --seed 3", "/home/\x00")
	f.Add("", "srun -n 1 --", "")
	f.Add("#", "= =", "//")
	f.Fuzz(func(t *testing.T, script, line, dir string) {
		c := Command{Script: script, Line: line, Dir: dir}
		got := c.Label()
		if got != c.Label() || len(got) > maxBase+9 {
			t.Fatalf("%+v is %q", c, got)
		}
		if base, hash, ok := strings.Cut(got, ":"); got != "" && (!ok || len(hash) != 8 || got != cluster.CleanName(got) || strings.Contains(base, ":")) {
			t.Fatalf("%+v is %q", c, got)
		}
		for _, w := range strings.Fields(cut(script)) {
			if p := plain(w); plain(p) != p {
				t.Fatalf("%q becomes %q and then %q", w, p, plain(p))
			}
		}
	})
}
