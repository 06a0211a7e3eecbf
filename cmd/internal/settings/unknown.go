package settings

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// forClients are the variables that only commands read, see package cli.
var forClients = []string{prefix + "_URL", prefix + "_CA_FILE"}

// unknownVariables finds CURFEW_ variables in environ that do not exist. Most are spelling mistakes, and
// ignoring one would mean running with a default that the operator wanted to change.
func unknownVariables(variables []variable, environ []string) (errs []error) {
	known := slices.Clone(forClients)
	for _, v := range variables {
		known = append(known, v.name)
		if v.secret {
			known = append(known, v.fileName())
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix+"_") || slices.Contains(known, name) {
			continue
		}
		if serviceHost.MatchString(name) || servicePort.MatchString(name) && (strings.Contains(name, "_PORT_") || portURL.MatchString(value)) {
			continue
		}
		away := func(other string) int {
			if strings.HasPrefix(other, name) || name == other+"_FILE" {
				return 0 // shortened, or of a variable that is not a secret
			}
			return levenshtein.ComputeDistance(name, other)
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return away(a) - away(b) })
		errs = append(errs, fmt.Errorf("%s: there is no such variable; did you mean %s? (curfew config lists all)", name, nearest))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// The variables that Kubernetes sets in every container if there is a Service named curfew or curfew-something (Kubernetes: Accessing the
// Service, Environment Variables).
var (
	serviceHost = regexp.MustCompile(`^CURFEW_(\w+_)?SERVICE_(HOST|PORT(_\w+)?)$`)
	servicePort = regexp.MustCompile(`^CURFEW_(\w+_)?PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)
	portURL     = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)
