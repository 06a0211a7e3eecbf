package alert

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// reach says which addresses sinks may connect to; see doc.go for the reasons.
type reach struct {
	hosts []string // without port, lower case
	nets  []netip.Prefix
}

// newReach reads a list of hosts, addresses and networks.
func newReach(allow []string) (r reach, err error) {
	for _, entry := range allow {
		entry = strings.ToLower(strings.TrimSpace(entry))
		if p, err := netip.ParsePrefix(entry); err == nil {
			r.nets = append(r.nets, p.Masked())
		} else if ip, err := netip.ParseAddr(entry); err == nil {
			r.nets = append(r.nets, netip.PrefixFrom(ip, ip.BitLen()))
		} else if entry == "" || strings.ContainsAny(entry, "/:@ ") {
			return r, fmt.Errorf("alert: %q is no host, address or network (CIDR)", entry)
		} else {
			r.hosts = append(r.hosts, entry)
		}
	}
	return r, nil
}

// CheckAllow says what in the list of Options.Allow is neither host, address nor network.
func CheckAllow(allow []string) error {
	_, err := newReach(allow)
	return err
}

// Errors of a connection that is not made.
var (
	errInside = errors.New("the name leads to an address inside this machine or its network; if that is meant, list the host in CURFEW_ALERT_ALLOW")
	errNever  = errors.New("link-local, multicast and unspecified addresses are not connected to; list the address in CURFEW_ALERT_ALLOW if that is meant")
	errPlain  = errors.New("http:// to a public address would show alert and secrets on the way: use https://, or list the host in CURFEW_ALERT_ALLOW")
)

// permit judges the address ip that the host of a URL has been resolved to.
func (r reach) permit(host string, ip netip.Addr, plain bool) error {
	ip = ip.Unmap()
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	listed := slices.ContainsFunc(r.nets, func(p netip.Prefix) bool { return p.Contains(ip) })
	named := slices.Contains(r.hosts, host)
	switch {
	case listed:
		return nil
	case ip.IsLinkLocalUnicast(), ip.IsMulticast(), ip.IsUnspecified():
		return errNever
	case named:
		return nil
	case inside(ip):
		if !insideName(host) {
			return errInside
		}
		return nil
	case plain:
		return errPlain
	}
	return nil
}

var carrierGrade = netip.MustParsePrefix("100.64.0.0/10")

// inside: loopback, RFC 1918, RFC 4193, RFC 6598.
func inside(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsPrivate() || carrierGrade.Contains(ip)
}

// insideName says that a host is named so that only an address inside can be meant: an
// address, a name without a dot, or a name under a domain that is nobody's in public.
func insideName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true
	}
	for _, domain := range []string{".local", ".internal", ".localhost", ".svc", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return strings.Contains(host, ".svc.") // of a Kubernetes cluster with a domain of its own
}

const (
	postTimeout = 5 * time.Second
	maxHeader   = 64 << 10
)

// client connects to where u leads, within reach, and follows no redirect: it could
// lead into a network the operator did not name. The address is judged when it is
// connected to, after the name was resolved.
func (r reach) client(u *url.URL) *http.Client {
	plain := u.Scheme == "http"
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		dialer := net.Dialer{Timeout: postTimeout, Control: func(_, resolved string, _ syscall.RawConn) error {
			ip, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return err
			}
			return r.permit(host, ip.Addr().WithZone(""), plain)
		}}
		return dialer.DialContext(ctx, network, address)
	}
	return &http.Client{
		Timeout: postTimeout,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dial, MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true,
			MaxIdleConns: 2, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: postTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
