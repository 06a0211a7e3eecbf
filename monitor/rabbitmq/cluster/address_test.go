package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct {
		text  string
		nodes []string
		vhost string
		shown string
	}{
		{"amqp://a", []string{"a:5672"}, "/", "amqp://guest@a:5672/%2F"},
		{"amqp://u:secret@a:1,b,[::1]:3/shop", []string{"a:1", "b:5672", "[::1]:3"}, "shop", "amqp://u@a:1,b:5672,[::1]:3/shop"},
		{"amqps://u:secret@a,b/%2F?cacertfile=/ca.pem,x", []string{"a:5671", "b:5671"}, "/", "amqps://u@a:5671,b:5671/%2F"},
		{"amqp://u:sec%2Cret%40@a,b/shop , amqp://u:secret@c:7/shop", []string{"a:5672", "b:5672", "c:7"}, "shop", "amqp://u@a:5672,b:5672,c:7/shop"},
		{"amqps://a/shop?auth_mechanism=external", []string{"a:5671"}, "shop", "amqps://a:5671/shop"},
	} {
		a, err := ParseAddress(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.nodes, a.Nodes())
		require.Equal(t, c.vhost, a.VHost)
		require.Equal(t, c.shown, a.String())
	}
	a, err := ParseAddress("amqps://u:secret@a,b/shop?cacertfile=/ca.pem")
	require.NoError(t, err)
	require.Equal(t, []string{"amqps://u:secret@a/shop?cacertfile=/ca.pem", "amqps://u:secret@b/shop?cacertfile=/ca.pem"}, a.nodes)
}

func TestParseAddressErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "amqp:// or amqps://",
		"http://u:secret@a":                     "amqp:// or amqps://",
		"amqp://u:secret@a,,b":                  "empty host name",
		"amqp://u:secret@":                      "empty host name",
		"amqp://u:sec%ret@a/":                   "node 1: a percent sign is not followed by two hexadecimal digits",
		"amqp://u:secret@a/x,amqp://u:se@b/y":   `different virtual hosts, "x" and "y"`,
		"amqp://u:secret@a:port/":               "node 1: it is not a URL",
		"amqp://u:secret@a b/":                  "node 1",
		"amqp://u:secret@a/?heartbeat=often":    "heartbeat",
		"amqp://u:secret@a,b/?channel_max=many": "channel_max",
	} {
		_, err := ParseAddress(text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "secret")
		require.False(t, strings.Contains(err.Error(), "sec%ret"), err)
	}
}

func TestOpenChecksAPI(t *testing.T) {
	for text, want := range map[string]string{
		"amqp://a":                             "http:// or https://",
		"https://":                             "an empty host name",
		"https://u:secret@a:b":                 "it is not a URL",
		"https://a?cacertfile=/does/not/exist": "cacertfile",
	} {
		_, err := Open(Options{URL: "amqp://u:p@a", APIURL: text})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	c, err := Open(Options{URL: "amqp://u:p@a", APIURL: "http://a:15672/api/"})
	require.NoError(t, err)
	require.Equal(t, "http://a:15672/api/", c.api.nodes[0].base)
	require.Equal(t, "u", c.api.nodes[0].user)
	c, err = Open(Options{URL: "amqp://u:p@a", APIURL: "http://v:w@a:15672/prefix"})
	require.NoError(t, err)
	require.Equal(t, "http://a:15672/prefix/api/", c.api.nodes[0].base)
	require.Equal(t, "v", c.api.nodes[0].user)
	require.Equal(t, "w", c.api.nodes[0].password)
}

func TestFamily(t *testing.T) {
	for version, want := range map[string]Family{"3.10.8": Family3, "3.13.7": Family3, "3.9.1": UnknownFamily, "4.0.5": Family40, "4.2.0-rc.1": Family40, "4.3.6": Family43,
		"5.0.0": Family43, "": UnknownFamily, "4": UnknownFamily, "x.y": UnknownFamily} {
		require.Equal(t, want, Server{Product: "RabbitMQ", Version: version}.Family(), version)
	}
	require.Equal(t, UnknownFamily, Server{Product: "Curfew", Version: "4.1.0"}.Family())
}
