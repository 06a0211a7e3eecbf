package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	chartWidth, chartHeight = 460, 300
	chartLeft, chartBottom  = 60, 50
	chartTop, chartRight    = 30, 20
)

var colours = []string{"#0b6e4f", "#c8553d", "#3a506b", "#b8860b"}

// plot draws the curves as SVG: one chart for each thing that grows, two in a row, with
// logarithmic axes.
func plot(curves []*curve) string {
	var names []string
	charts := map[string][]*curve{}
	for _, c := range curves {
		if len(charts[c.Chart]) == 0 {
			names = append(names, c.Chart)
		}
		charts[c.Chart] = append(charts[c.Chart], c)
	}
	rows := (len(names) + 1) / 2
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", 2*chartWidth, rows*chartHeight)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for i, name := range names {
		fmt.Fprintf(&b, `<g transform="translate(%d,%d)">`+"\n", i%2*chartWidth, i/2*chartHeight)
		newChart(charts[name]).draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// chart maps the decimal logarithms of its curves to coordinates.
type chart struct {
	curves                 []*curve
	minX, maxX, minY, maxY float64
}

func newChart(curves []*curve) *chart {
	c := &chart{curves: curves, minX: math.Inf(1), maxX: math.Inf(-1), minY: math.Inf(1), maxY: math.Inf(-1)}
	for _, line := range curves {
		for _, p := range line.Points {
			x, y := math.Log10(p.X), math.Log10(max(1, p.Y))
			c.minX, c.maxX = min(c.minX, x), max(c.maxX, x)
			c.minY, c.maxY = min(c.minY, y), max(c.maxY, y)
		}
	}
	c.minY, c.maxY = math.Floor(c.minY), math.Ceil(c.maxY)
	c.maxX, c.maxY = max(c.maxX, c.minX+1), max(c.maxY, c.minY+1)
	return c
}

func (c *chart) x(v float64) float64 {
	return chartLeft + (math.Log10(v)-c.minX)/(c.maxX-c.minX)*(chartWidth-chartLeft-chartRight)
}

func (c *chart) y(v float64) float64 {
	return chartHeight - chartBottom - (math.Log10(max(1, v))-c.minY)/(c.maxY-c.minY)*(chartHeight-chartBottom-chartTop)
}

func (c *chart) draw(b *strings.Builder) {
	for e := c.minY; e <= c.maxY; e++ {
		y := c.y(math.Pow(10, e))
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s/s</text>`+"\n",
			chartLeft, y, chartWidth-chartRight, y, chartLeft-6, y+4, short(math.Pow(10, e)))
	}
	var xs []float64
	for i, line := range c.curves {
		c.line(b, line, colours[i%len(colours)], i)
		for _, p := range line.Points {
			xs = append(xs, p.X)
		}
	}
	slices.Sort(xs)
	for _, x := range slices.Compact(xs) {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", c.x(x), chartHeight-chartBottom+16, short(x))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" font-weight="bold">%s</text>`+"\n",
		(chartLeft+chartWidth-chartRight)/2, chartHeight-chartBottom+36, c.curves[0].X)
}

func (c *chart) line(b *strings.Builder, line *curve, colour string, at int) {
	var points strings.Builder
	for _, p := range line.Points {
		fmt.Fprintf(&points, "%.1f,%.1f ", c.x(p.X), c.y(p.Y))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, c.x(p.X), c.y(p.Y), colour)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", points.String(), colour)
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", chartLeft+8+at*200, chartTop-12, colour, line.Series)
}
