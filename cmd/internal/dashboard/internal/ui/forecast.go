package ui

import (
	g "maragu.dev/gomponents"

	"curfew/monitor"
)

// Deadlines is the number of deadlines in a forecast; nil for none.
func Deadlines(f *monitor.Forecast) g.Node {
	switch {
	case f == nil:
		return Faint("0")
	case f.Sampled:
		return g.Text("~" + Number(f.Deadlines))
	}
	return g.Text(Number(f.Deadlines))
}

// WillMiss is how many messages of a forecast will expire.
func WillMiss(f *monitor.Forecast) g.Node {
	if f == nil || f.WillMiss == 0 {
		return Faint("0")
	}
	text := Number(f.WillMiss)
	if f.Sampled {
		text = "about " + text
	}
	return Class(RiskClass(f.AtRisk), g.Text(text))
}

// RiskClass is the class of messages at risk: red once their queue is at risk by the forecast, since they are nearly due; amber before.
func RiskClass(nearly bool) string {
	if nearly {
		return "bad"
	}
	return "warn"
}
