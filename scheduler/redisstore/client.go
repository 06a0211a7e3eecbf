package redisstore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// settings hold where the URL names no others. A schedule that does not answer
// within a second or two is away, and the caller has another. All that is sent is
// pipelined, so one pool serves. What not every kind of URL can say stands below:
// a dial is tried once per attempt, and the caller's context ends every call.
var settings = map[string]string{
	"dial_timeout":       "2s",
	"read_timeout":       "1s",
	"write_timeout":      "1s",
	"max_retries":        "2",
	"pool_size":          "8",
	"pipeline_pool_size": "-1",
}

// errURL stands for the parser's error, which quotes what it could not parse.
var errURL = errors.New("cannot be parsed; characters such as # / ? @ in a password must be percent-encoded")

func newClient(text string) (redis.UniversalClient, error) {
	if text == "" {
		return nil, errors.New("is empty")
	}
	if !strings.Contains(text, "://") {
		text = "redis://" + text
	}
	scheme, rest, _ := strings.Cut(text, "://")
	address, hosts, err := normalize(rest)
	if err != nil {
		return nil, err
	}
	switch scheme {
	case "unix":
		return newSimpleClient("unix://" + address)
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
	return nil, fmt.Errorf("scheme %q is none of redis, rediss, unix, redis-cluster, rediss-cluster, redis-sentinel, rediss-sentinel", scheme)
}

// normalize turns user:pw@host1,host2/path?query into the form go-redis reads,
// user:pw@host1/path?query&addr=host2, with our settings among the query. It also
// counts the hosts.
func normalize(rest string) (address string, hosts int, err error) {
	rest, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", 0, errURL
	}
	for name, value := range settings {
		if !values.Has(name) {
			values.Set(name, value)
		}
	}
	authority, path, hasPath := strings.Cut(rest, "/")
	if hasPath {
		path = "/" + path
	}
	user := authority[:strings.LastIndexByte(authority, '@')+1]
	list := strings.Split(authority[len(user):], ",")
	for _, host := range list[1:] {
		values.Add("addr", host)
	}
	return user + list[0] + path + "?" + values.Encode(), len(list), nil
}

func newSimpleClient(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, hideURL(err)
	}
	o.MaintNotificationsConfig = noNotices()
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	return redis.NewClient(o), nil
}

func newClusterClient(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(text)
	if err != nil {
		return nil, hideURL(err)
	}
	o.MaintNotificationsConfig = noNotices()
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	return redis.NewClusterClient(o), nil
}

func newFailoverClient(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(text)
	if err != nil {
		return nil, hideURL(err)
	}
	if o.MasterName == "" {
		return nil, errors.New("of Sentinel needs ?master_name=")
	}
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	return redis.NewFailoverClient(o), nil
}

func hideURL(err error) error {
	if _, quotes := errors.AsType[*url.Error](err); quotes {
		return errURL
	}
	return err
}

// noNotices keeps go-redis from asking each connection for Redis Enterprise's
// maintenance notices, which other servers answer with an error that their
// operators then see counted. It does not ask through Sentinel.
func noNotices() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
