package chart

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// linear gives the red, green and blue of a colour such as #0072b2 in linear light.
func linear(t *testing.T, text string) (out [3]float64) {
	t.Helper()
	if len(text) == 3 {
		text = text[:1] + text[:1] + text[1:2] + text[1:2] + text[2:] + text[2:]
	}
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		c := float64(n>>(16-8*i)&255) / 255
		if out[i] = math.Pow((c+0.055)/1.055, 2.4); c <= 0.04045 {
			out[i] = c / 12.92
		}
	}
	return out
}

func luminance(c [3]float64) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

// perceived gives a colour in OKLab (Ottosson 2020), where distances are what people see.
func perceived(c [3]float64) [3]float64 {
	l := math.Cbrt(0.4122214708*c[0] + 0.5363325363*c[1] + 0.0514459929*c[2])
	m := math.Cbrt(0.2119034982*c[0] + 0.6806995451*c[1] + 0.1073969566*c[2])
	s := math.Cbrt(0.0883024619*c[0] + 0.2817188376*c[1] + 0.6299787005*c[2])
	return [3]float64{0.2104542553*l + 0.793617785*m - 0.0040720468*s, 1.9779984951*l - 2.428592205*m + 0.4505937099*s, 0.0259040371*l + 0.7827717662*m - 0.808675766*s}
}

// contrast is that of two colours (WCAG 2.2), from 1 to 21.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(linear(t, a)), luminance(linear(t, b))
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// By day and by night, text in every colour for words has a contrast of 4.5 (WCAG 1.4.3) to both backgrounds, also a chosen entry's, whose
// colours are swapped. The first hues, which most sites have, are seen on both.
func TestContrastOfText(t *testing.T) {
	blocks := strings.Split(Palette, "--bg:")[1:]
	if len(blocks) != 3 {
		t.Fatalf("%d themes, want light, and dark twice", len(blocks))
	}
	for i, block := range blocks {
		colours := map[string]string{}
		for _, c := range regexp.MustCompile(`--(\w+):#(\w+)`).FindAllStringSubmatch("--bg:"+block, -1) {
			colours[c[1]] = c[2]
		}
		for _, ground := range []string{"bg", "pane"} {
			for _, word := range []string{"fg", "soft", "link", "good", "warn", "bad"} {
				if got := contrast(t, colours[word], colours[ground]); got < 4.5 {
					t.Errorf("theme %d: --%s on --%s has a contrast of %.2f", i, word, ground, got)
				}
			}
			for k := range Colours {
				if got := contrast(t, colours["k"+strconv.Itoa(k)], colours[ground]); got < 3 {
					t.Errorf("theme %d: --k%d on --%s has a contrast of %.2f", i, k, ground, got)
				}
			}
		}
	}
}

// By day and by night every hue has a contrast of 3 to the background (WCAG 1.4.11), and no two look alike.
func TestPalette(t *testing.T) {
	themes := regexp.MustCompile(`--bg:#(\w+)`).FindAllStringSubmatch(Palette, -1)
	for i, block := range strings.Split(Palette, "--bg:")[1:] {
		background := luminance(linear(t, themes[i][1]))
		hues := regexp.MustCompile(`--k\d+:#(\w+)`).FindAllStringSubmatch(block, -1)
		if len(hues) != Hues {
			t.Fatalf("theme %d has %d hues", i, len(hues))
		}
		for a := range hues {
			c := linear(t, hues[a][1])
			high, low := max(background, luminance(c)), min(background, luminance(c))
			if contrast := (high + 0.05) / (low + 0.05); contrast < 3 {
				t.Errorf("theme %d: k%d has a contrast of %.2f", i, a, contrast)
			}
			for b := range a {
				x, y := perceived(c), perceived(linear(t, hues[b][1]))
				if far := math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2]); far < 0.09 {
					t.Errorf("theme %d: k%d and k%d are %.3f apart", i, a, b, far)
				}
			}
		}
	}
}
