// Package chart draws numbers: the deadlines ahead as a timeline, the lateness of messages as a
// histogram, a percentage as a strip.
//
// A chart is first computed and then drawn as HTML and SVG. Its links and surroundings are left to
// the page.
package chart
