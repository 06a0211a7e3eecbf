// Package assets has the files that pages load: the style sheet, the script and the icon. They are
// part of the program.
package assets
