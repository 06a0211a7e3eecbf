package redisstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// settings are used unless the URL has others. A schedule that does not answer
// within a second or two counts as away, and the caller has another. Everything sent
// is pipelined, so one pool is enough. Two more settings, which not every kind of URL
// can have, are made below: a dial is tried once per attempt, and the caller's context
// ends every call.
var settings = map[string]string{
	"dial_timeout":       "2s",
	"read_timeout":       "1s",
	"write_timeout":      "1s",
	"max_retries":        "2",
	"pool_size":          "8",
	"pipeline_pool_size": "-1",
}

// errURL replaces the parser's error, which quotes what it could not parse.
var errURL = errors.New("cannot be parsed; characters such as # / ? @ in a password must be percent-encoded")

// NewClient makes a client of the Redis at a URL as Options.URL has it. It does not connect. Errors hold no password.
func NewClient(text string) (redis.UniversalClient, error) {
	if text == "" {
		return nil, errors.New("is empty")
	}
	if !strings.Contains(text, "://") {
		text = "redis://" + text
	}
	scheme, rest, _ := strings.Cut(text, "://")
	client, err := newClientOf(scheme, rest)
	if err != nil && mayQuoteSecret(rest, err) {
		return nil, errURL
	}
	return client, err
}

// mayQuoteSecret reports whether an error may repeat a part of a password: it quotes the
// URL, or a separator in the password made the rest of it look like a path or query.
func mayQuoteSecret(rest string, err error) bool {
	_, quotes := errors.AsType[*url.Error](err)
	separator := strings.IndexAny(rest, "/?#")
	return quotes || separator >= 0 && strings.Contains(rest[separator:], "@")
}

func newClientOf(scheme, rest string) (redis.UniversalClient, error) {
	if scheme == "unix" {
		path, query, err := withSettings(rest)
		if err != nil {
			return nil, err
		}
		return newSimpleClient("unix://" + path + "?" + query.Encode())
	}
	port := "6379"
	if strings.HasSuffix(scheme, "-sentinel") {
		port = "26379"
	}
	address, hosts, err := normalize(rest, port)
	if err != nil {
		return nil, err
	}
	switch scheme {
	case "redis", "rediss":
		if hosts > 1 {
			return newClusterClient(scheme + "://" + address)
		}
		return newSimpleClient(scheme + "://" + address)
	case "redis-cluster", "rediss-cluster":
		return newClusterClient(strings.TrimSuffix(scheme, "-cluster") + "://" + address)
	case "redis-sentinel", "rediss-sentinel":
		return newFailoverClient(strings.TrimSuffix(scheme, "-sentinel") + "://" + address)
	}
	return nil, fmt.Errorf("scheme %q is not one of redis, rediss, unix, redis-cluster, rediss-cluster, redis-sentinel, rediss-sentinel", scheme)
}

// withSettings cuts off the query and completes it with our settings.
func withSettings(rest string) (address string, query url.Values, err error) {
	address, text, _ := strings.Cut(rest, "?")
	query, err = url.ParseQuery(text)
	if err != nil {
		return "", nil, errURL
	}
	for name, value := range settings {
		if !query.Has(name) {
			query.Set(name, value)
		}
	}
	return address, query, nil
}

// normalize turns user:pw@host1,host2/path?query into the form go-redis reads,
// user:pw@host1:port/path?query&addr=host2:port, with our settings among the query.
// It also counts the hosts.
func normalize(rest, port string) (address string, hosts int, err error) {
	rest, query, err := withSettings(rest)
	if err != nil {
		return "", 0, err
	}
	authority, path, _ := strings.Cut(rest, "/")
	user := authority[:strings.LastIndexByte(authority, '@')+1]
	list := strings.Split(authority[len(user):], ",")
	for i, host := range list {
		if list[i], err = withPort(host, port); err != nil {
			return "", 0, err
		}
	}
	for _, host := range list[1:] {
		query.Add("addr", host)
	}
	return user + list[0] + "/" + path + "?" + query.Encode(), len(list), nil
}

// withPort adds the port to a host that names none.
func withPort(host, port string) (string, error) {
	if strings.Contains(host, ":") && !strings.HasSuffix(host, "]") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			return "", errURL
		}
		return host, nil
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port), nil
}

func newSimpleClient(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, err
	}
	o.MaintNotificationsConfig = noNotices()
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	return redis.NewClient(o), nil
}

func newClusterClient(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(text)
	if err != nil {
		return nil, err
	}
	o.MaintNotificationsConfig = noNotices()
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	return redis.NewClusterClient(o), nil
}

func newFailoverClient(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(text)
	if err != nil {
		return nil, err
	}
	if o.MasterName == "" {
		return nil, errors.New("with Sentinel, ?master_name= is required")
	}
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	return redis.NewFailoverClient(o), nil
}

// noNotices keeps go-redis from requesting Redis Enterprise's maintenance notices on
// each connection. Other servers answer that with an error, which their operators then
// see counted. Through Sentinel go-redis does not request them.
func noNotices() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
