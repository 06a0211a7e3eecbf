// Package trends shows the history of the last day: as charts, which the script chart.js draws with uPlot from the JSON of monitor/history, and
// as a table for those without scripts or sight. Marks show what else happened.
package trends
