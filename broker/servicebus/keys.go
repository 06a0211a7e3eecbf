package servicebus

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Claims are what a key allows.
type Claims uint8

const (
	Listen Claims = 1 << iota
	Send
	Manage
)

var claimNames = map[string]Claims{"listen": Listen, "send": Send, "manage": Listen | Send | Manage}

// Key is a shared access policy of the namespace.
type Key struct {
	Name, Key string
	Claims    Claims
}

// Options say who may connect as a client of Service Bus. With the zero value nobody may.
type Options struct {
	Keys     []Key
	Emulator bool   // clients on this machine may use any token that no key of Keys has signed, as with Microsoft's emulator
	User     string // of the broker: clients act as this user, within the claims of their keys

	// Hosts are the names, beside localhost, that clients on this machine may have for it in HTTP (Named).
	Hosts []string
}

// On reports whether anybody may connect.
func (o *Options) On() bool { return len(o.Keys) > 0 || o.Emulator }

// Named reports whether the Host of a request means this machine. A browser lets a page ask the site that it came
// from, and takes the word of the page's own name server for where that is: such a request has another name.
func (o *Options) Named(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, _ := netip.ParseAddr(strings.Trim(host, "[]"))
	return ip.IsLoopback() || strings.EqualFold(host, "localhost") || host != "" && slices.ContainsFunc(o.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// ParseKeys parses name=key[:claim+claim...], separated by commas. The claims are listen, send and
// manage; without any a key has all.
func ParseKeys(text string) (keys []Key, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, key, _ := strings.Cut(part, "=")
		k := Key{Name: name, Key: key, Claims: claimNames["manage"]}
		if key, claims, given := strings.Cut(key, ":"); given {
			k.Key, k.Claims = key, 0
			for claim := range strings.SplitSeq(claims, "+") {
				if claimNames[claim] == 0 {
					return nil, fmt.Errorf("unknown claim %q of key %q; the claims are listen, send and manage", claim, name)
				}
				k.Claims |= claimNames[claim]
			}
		}
		if k.Name == "" || k.Key == "" {
			return nil, errors.New("expected name=key, or name=key:claim+claim, separated by commas")
		}
		keys = append(keys, k)
	}
	return keys, nil
}

var (
	errToken = errors.New("MalformedToken: the token is not a shared access signature")
	errKey   = errors.New("InvalidSignature: the signature of the token is wrong, or its key is not known")
	errOther = errors.New("InvalidAudience: the token is for another entity")
)

// emulatorToken is how long a token counts that is not looked at.
const emulatorToken = 24 * time.Hour

// Check returns what a shared access signature allows on the resource with that address, such as
// sb://host/queue, and until when. local: the client is on this machine. The host is not compared.
func (o *Options) Check(token, address string, local bool, now time.Time) (Claims, time.Time, error) {
	fields, signed := strings.CutPrefix(token, "SharedAccessSignature ")
	given := map[string]string{}
	for pair := range strings.SplitSeq(fields, "&") {
		name, value, _ := strings.Cut(pair, "=")
		given[name] = value
	}
	known := slices.ContainsFunc(o.Keys, func(k Key) bool { return k.Name == given["skn"] })
	if o.Emulator && local && !(signed && known) {
		return claimNames["manage"], now.Add(emulatorToken), nil
	}
	if !signed {
		return 0, time.Time{}, errToken
	}
	seconds, err := strconv.ParseInt(given["se"], 10, 64)
	if err != nil {
		return 0, time.Time{}, errToken
	}
	until := time.Unix(seconds, 0)
	claims := o.claims(given)
	resource, err := url.QueryUnescape(given["sr"])
	if !strings.Contains(resource, "://") { // it begins with the host
		resource = "sb://" + resource
	}
	switch {
	case err != nil:
		return 0, time.Time{}, errToken
	case claims == 0:
		return 0, time.Time{}, errKey
	case !until.After(now):
		return 0, time.Time{}, fmt.Errorf("ExpiredToken: The token is expired. Expiration time: %s", until.UTC().Format(time.RFC3339))
	case !within(PathOf(address), PathOf(resource)):
		return 0, time.Time{}, errOther
	}
	return claims, until, nil
}

// claims returns those of the key that has signed a token; 0: none has.
func (o *Options) claims(token map[string]string) Claims {
	name, err := url.QueryUnescape(token["skn"])
	signature, err2 := url.QueryUnescape(token["sig"])
	if err != nil || err2 != nil {
		return 0
	}
	for _, k := range o.Keys {
		if k.Name != name {
			continue
		}
		mac := hmac.New(sha256.New, []byte(k.Key))
		mac.Write([]byte(token["sr"] + "\n" + token["se"]))
		if hmac.Equal([]byte(base64.StdEncoding.EncodeToString(mac.Sum(nil))), []byte(signature)) {
			return k.Claims
		}
	}
	return 0
}

// within reports whether a path is the other one, or is below it.
func within(path, top string) bool {
	path, top = strings.ToLower(path), strings.ToLower(top)
	return top == "" || path == top || strings.HasPrefix(path, top+"/")
}

// PathOf is the path of an address such as amqp://host:port/queue, without slashes at its ends.
func PathOf(address string) string {
	if _, rest, given := strings.Cut(address, "://"); given {
		_, address, _ = strings.Cut(rest, "/")
	}
	address, _, _ = strings.Cut(address, "?")
	return strings.Trim(address, "/")
}
