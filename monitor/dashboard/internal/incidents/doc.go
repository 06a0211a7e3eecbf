// Package incidents is the page of incidents, acknowledgements and maintenance windows.
package incidents
