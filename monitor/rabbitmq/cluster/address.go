package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// Address is where the nodes of a RabbitMQ cluster are, with the credentials and the virtual
// host. The zero value has no node.
type Address struct {
	VHost string   // the virtual host that it names; / if it names none
	nodes []string // one URL each, with the password
}

// nextURL is where the next URL of a list begins.
var nextURL = regexp.MustCompile(`,\s*(amqp|http)s?://`)

// ParseAddress reads one or several nodes:
//
//	amqp://user:password@host:5672/vhost
//	amqps://user:password@a,b:5671,c/vhost?cacertfile=/etc/ca.pem
//	amqp://user:password@a/vhost,amqp://user:password@b/vhost
//
// The parameters are RabbitMQ's: cacertfile, certfile, keyfile, server_name_indication,
// auth_mechanism, heartbeat, connection_timeout (ms), channel_max. All nodes have to name
// the same virtual host. Errors do not quote the text, since it may contain a password.
//
// Source: RabbitMQ: URI Specification, URI Query Parameters.
func ParseAddress(text string) (Address, error) {
	var a Address
	for _, part := range splitURLs(text) {
		urls, err := splitHosts(part, "amqp")
		if err != nil {
			return Address{}, fmt.Errorf("the address %w", err)
		}
		for _, one := range urls {
			parsed, err := amqp091.ParseURI(one)
			if err != nil {
				return Address{}, fmt.Errorf("the address of node %d: %w", len(a.nodes)+1, withoutURL(err))
			}
			if len(a.nodes) > 0 && parsed.Vhost != a.VHost {
				return Address{}, fmt.Errorf("the nodes name different virtual hosts, %q and %q", a.VHost, parsed.Vhost)
			}
			a.nodes, a.VHost = append(a.nodes, one), parsed.Vhost
		}
	}
	return a, nil
}

func splitURLs(text string) (parts []string) {
	text = strings.TrimSpace(text)
	for {
		comma := nextURL.FindStringIndex(text)
		if comma == nil {
			return append(parts, text)
		}
		parts = append(parts, strings.TrimSpace(text[:comma[0]]))
		text = strings.TrimSpace(text[comma[0]+1:])
	}
}

// splitHosts turns a URL with several hosts into one URL for each. Its scheme is the one given, perhaps with an s.
func splitHosts(text, scheme string) (urls []string, err error) {
	found, rest, _ := strings.Cut(text, "://")
	if strings.TrimSuffix(found, "s") != scheme {
		return nil, fmt.Errorf("has to begin with %s:// or %ss://", scheme, scheme)
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	at := strings.LastIndex(authority, "@") + 1
	for host := range strings.SplitSeq(authority[at:], ",") {
		if host = strings.TrimSpace(host); host == "" {
			return nil, errors.New("has an empty host name")
		}
		urls = append(urls, found+"://"+authority[:at]+host+tail)
	}
	return urls, nil
}

// withoutURL returns why a URL is wrong, without the URL.
func withoutURL(err error) error {
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		if reason, ok := errors.AsType[url.InvalidHostError](wrong.Err); ok {
			return fmt.Errorf("the character %s is not allowed in a host name", string(reason))
		}
		if _, ok := errors.AsType[url.EscapeError](wrong.Err); ok {
			return errors.New("a percent sign is not followed by two hexadecimal digits")
		}
		return errors.New("it is not a URL; reserved characters in user name, password and virtual host (such as @ : / ? # %) have to be percent-encoded")
	}
	return err
}

// Nodes lists the nodes as host:port.
func (a Address) Nodes() (list []string) {
	for _, one := range a.nodes {
		u, _ := amqp091.ParseURI(one)
		list = append(list, net.JoinHostPort(u.Host, strconv.Itoa(u.Port)))
	}
	return list
}

// User returns the user of the first node; "" if only its certificate says who it is (auth_mechanism external).
func (a Address) User() string {
	if len(a.nodes) == 0 {
		return ""
	}
	u, _ := amqp091.ParseURI(a.nodes[0])
	if slices.Contains(u.AuthMechanism, "external") {
		return ""
	}
	return u.Username
}

// String has scheme, user, nodes and virtual host, but no password and no parameters.
func (a Address) String() string {
	if len(a.nodes) == 0 {
		return ""
	}
	scheme, _, _ := strings.Cut(a.nodes[0], "://")
	who := strings.TrimPrefix(a.User()+"@", "@") // nothing without a user
	return scheme + "://" + who + strings.Join(a.Nodes(), ",") + "/" + url.PathEscape(a.VHost)
}
