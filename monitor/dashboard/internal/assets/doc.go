// Package assets has the files that pages load: the style sheet, the scripts and the icon. They are
// part of the program.
//
// uPlot.js and uPlot.css are uPlot 1.6.32 as npm has it (dist/uPlot.iife.min.js and dist/uPlot.min.css), unchanged. It draws the charts of the
// history. Its licence is MIT: uPlot-LICENSE.txt.
package assets
