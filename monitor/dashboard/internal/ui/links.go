package ui

import (
	"net/url"
	"strings"

	"curfew/broker/operate"
)

// Local is to if it is a path of this site, otherwise "/".
func Local(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}

// With is a path with the query v, in which the given names have the given values; an empty value
// removes the name.
func With(path string, v url.Values, changes ...string) string {
	changed := url.Values{}
	for name, values := range v {
		changed[name] = values
	}
	for i := 0; i < len(changes); i += 2 {
		changed.Del(changes[i])
		if changes[i+1] != "" {
			changed.Set(changes[i], changes[i+1])
		}
	}
	if len(changed) == 0 {
		return path
	}
	return path + "?" + changed.Encode()
}

func QueueURL(vhost, name string) string {
	return "/queue?" + url.Values{"vhost": {vhost}, "name": {name}}.Encode()
}

// Named is the queue that a query or a form names.
func Named(q url.Values) operate.QueueName {
	return operate.QueueName{VHost: q.Get("vhost"), Name: q.Get("name")}
}
