// Package chart draws numbers: the deadlines ahead as a timeline, the lateness of messages as a
// histogram, a percentage as a strip.
//
// A chart is computed first and drawn as HTML and SVG then. It has no links; what surrounds it is
// left to the page.
package chart
