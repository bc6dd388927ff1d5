package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// bar is one line of a plot.
type bar struct {
	name  string
	value float64
	text  string
	ours  bool
}

// plots are all by name.
func plots(f *figures) map[string]string {
	pick := func(of func(p *peer) (float64, bool), text func(v float64) string) (all []bar) {
		for i := range f.Peers {
			p := &f.Peers[i]
			if v, ok := of(p); ok && v > 0 {
				all = append(all, bar{p.Name, v, text(v), p.Key == "oclocks"})
			}
		}
		return all
	}
	times := func(v float64) string { return fmt.Sprintf("%.2f ×", v) }
	ratio := func(name string) []bar {
		return pick(func(p *peer) (float64, bool) { return p.ratio(name) }, times)
	}
	plain := func(name string, text func(v float64) string) []bar {
		return pick(func(p *peer) (float64, bool) { return p.median(name) }, text)
	}
	return map[string]string{
		"lock":       draw("Time of an uncontended lock, p50, as a multiple of a raw NATS request to another node (less is better)", ratio("lock_p50_us")),
		"pairs-64":   draw("Pairs a second, 64 workers, of raw NATS request pairs to another node (more is better)", ratio("pairs_64")),
		"pairs-256":  draw("Pairs a second, 256 workers, of raw NATS request pairs to another node (more is better)", ratio("pairs_256")),
		"hand-overs": draw("Hand-overs a second to another worker, 10 workers on one lock (more is better)", plain("hand_overs", thousands)),
		"drained":    draw("Until 1,000 waiters have had the lock (less is better)", plain("drained_ms", milliText)),
		"gap":        draw("kill -9 of the leader: the unluckiest worker is granted nothing for (less is better; those that stop for good are not here)", plain("gap_of_one_ms", milliText)),
	}
}

const (
	plotWidth = 900
	barHeight = 22
	barSpace  = 8
	nameWidth = 300
	textWidth = 90
	plotTop   = 56
)

// draw is a plot of horizontal bars on a logarithmic scale. Its colours follow the reader's.
func draw(title string, bars []bar) string {
	lo, hi := scale(bars)
	height := plotTop + len(bars)*(barHeight+barSpace) + 30
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="14" role="img" aria-label="%s">
<style>
 text { fill: #1f2328 } .grid { stroke: #d1d9e0 } .bar { fill: #8c959f } .ours { fill: #0969da } .ground { fill: #ffffff } .small { font-size: 12px }
 @media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .grid { stroke: #3d444d } .bar { fill: #656c76 } .ours { fill: #4493f8 } .ground { fill: #0d1117 } }
</style>
<rect class="ground" width="100%%" height="100%%"/>
<text x="12" y="24" font-weight="600">%s</text>
`, plotWidth, height, html.EscapeString(title), html.EscapeString(title))
	width := float64(plotWidth - nameWidth - textWidth)
	at := func(v float64) float64 { return nameWidth + width*(math.Log10(v)-lo)/(hi-lo) }
	for e := lo; e <= hi; e++ {
		x := at(math.Pow(10, e))
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`+"\n"+`<text class="small" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x, x, plotTop-8, height-24, x, height-8, mark(e))
	}
	for i, r := range bars {
		y, class := plotTop+i*(barHeight+barSpace), "bar"
		if r.ours {
			class = "ours"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", nameWidth-10, y+16, html.EscapeString(r.name))
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`+"\n", class, nameWidth, y, at(r.value)-nameWidth, barHeight)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", at(r.value)+6, y+16, html.EscapeString(r.text))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// scale is the powers of ten that all values lie between.
func scale(bars []bar) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, r := range bars {
		lo, hi = min(lo, math.Log10(r.value)), max(hi, math.Log10(r.value))
	}
	if len(bars) == 0 {
		return 0, 1
	}
	lo, hi = math.Floor(lo-0.05), math.Ceil(hi)
	return lo, max(hi, lo+1)
}

func mark(power float64) string {
	if power < 0 {
		return fmt.Sprintf("%.*f", int(-power), math.Pow(10, power))
	}
	return thousands(math.Pow(10, power))
}
