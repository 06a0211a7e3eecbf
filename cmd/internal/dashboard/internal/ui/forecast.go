package ui

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/deadline"
	"curfew/broker/operate"
)

// Deadlines is the number of deadlines in a forecast; nil for none.
func Deadlines(f *deadline.Forecast) g.Node {
	switch {
	case f == nil || f.Deadlines == 0:
		return Faint("0")
	case f.Sampled:
		return g.Text("~" + Number(f.Deadlines))
	}
	return g.Text(Number(f.Deadlines))
}

// AtRisk is how many messages of a forecast are at risk, and how many expire as meant; nil for none.
func AtRisk(f *deadline.Forecast) g.Node {
	if f == nil || f.AtRisk+f.AsMeant == 0 {
		return Faint("0")
	}
	about := ""
	if f.Sampled {
		about = "about "
	}
	if f.AsMeant > 0 {
		return g.Group{Faint("0"), h.Div(Faint(about + Number(f.AsMeant) + " as meant"))}
	}
	return Class(RiskClass(f.NearlyDue), g.Text(about+Number(f.AtRisk)))
}

// RiskClass is the class of messages at risk: red once their queue is at risk by the forecast, since they are nearly due; amber before.
func RiskClass(nearly bool) string {
	if nearly {
		return "bad"
	}
	return "warn"
}

// Lost is how many messages expired in the last hour and are gone, and how many were dead-lettered or parked, or a dash where an expiry is no loss,
// and how many expired as meant.
func Lost(l operate.Losses) g.Node {
	meant := g.Iff(l.Meant > 0, func() g.Node { return h.Div(Faint(Number(l.Meant) + " as meant")) })
	if l.Lost < 0 {
		return g.Group{Faint("–"), meant}
	}
	gone, class := Faint("0"), "faint"
	if l.Lost > 0 {
		gone = Class("bad", g.Text(Number(l.Lost)))
	}
	if l.Parked > 0 {
		class = "warn"
	}
	l.Lost = 0
	return g.Group{gone, g.If(l.Rescued > 0, h.Div(Class(class, g.Text(Losses(l))))), meant}
}
