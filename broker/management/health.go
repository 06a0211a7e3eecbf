package management

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker/management/rest"
)

// healthy is the answer of a check that found no problem.
func healthy(r *request) error { return r.Answer(object{"status": "ok"}) }

// failed is the answer of a check that found one.
func failed(r *request, reason string, more object) error {
	o := object{"status": "failed", "reason": reason}
	for key, v := range more {
		o[key] = v
	}
	rest.AnswerJSON(r.W, http.StatusServiceUnavailable, o)
	return nil
}

// alarms are the resources that are used up.
func (a *API) alarms() (list []string) {
	memory, disk := a.b.Alarm.Low()
	if memory {
		list = append(list, "memory")
	}
	if disk {
		list = append(list, "disk")
	}
	return list
}

// checkNode is the check from before RabbitMQ 3.8.10, which old monitoring tools use. It reports
// a problem with status 200.
func checkNode(r *request) error {
	if alarms := r.api.alarms(); alarms != nil {
		return r.Answer(object{"status": "failed", "reason": "resource alarm(s) in effect:[" + strings.Join(alarms, ",") + "]"})
	}
	return healthy(r)
}

// checkAlarms is for alarms and local-alarms: one node is the cluster.
func checkAlarms(r *request) error {
	var alarms []object
	for _, resource := range r.api.alarms() {
		alarms = append(alarms, object{"node": r.api.Node, "resource": resource})
	}
	if alarms == nil {
		return healthy(r)
	}
	return failed(r, "There are alarms in effect in the cluster", object{"alarms": alarms})
}

func checkCritical(r *request) error {
	return r.Answer(object{"status": "ok", "reason": "single node cluster"})
}

func checkPort(r *request) error {
	port, err := strconv.Atoi(r.Param("port"))
	if err != nil {
		return rest.Bad("Invalid port")
	}
	return checkListener(r, "port", port, port, func(l Listener) int { return l.Port })
}

// protocolNames are other names of a listener's protocol.
var protocolNames = map[string]string{
	"amqp091": "amqp", "amqp0.9.1": "amqp", "amqp0-9-1": "amqp", "amqps": "amqp/ssl", "amqp-tls": "amqp/ssl", "prometheus": "http/prometheus",
}

func checkProtocol(r *request) error {
	asked := r.Param("protocol")
	return checkListener(r, "protocol", asked, cmp.Or(protocolNames[strings.ToLower(asked)], asked), func(l Listener) string { return l.Protocol })
}

// checkListener checks that a socket has what is wanted, and answers with what was asked for.
func checkListener[T comparable](r *request, what string, asked, wanted T, of func(Listener) T) error {
	have := []T{}
	for _, l := range r.api.Listeners {
		have = append(have, of(l))
	}
	if slices.Contains(have, wanted) {
		return r.Answer(object{"status": "ok", what: asked})
	}
	return failed(r, "No active listener", object{"missing": asked, what + "s": have})
}

// checkService checks that AMQP clients are served.
func checkService(r *request) error {
	for _, l := range r.api.Listeners {
		if strings.HasPrefix(l.Protocol, "amqp") {
			return healthy(r)
		}
	}
	return failed(r, "There are no active AMQP listeners", nil)
}

// checkConnections checks that one more connection would be accepted.
func checkConnections(r *request) error {
	most, _ := r.api.Server.Full()
	now := r.api.Server.Connections()
	if now >= most {
		return failed(r, "node connection limit is reached", object{"limit": most, "connections": now})
	}
	return r.Answer(object{"status": "ok", "limit": most, "connections": now})
}

// certificateUnits are the units of time in the path.
var certificateUnits = map[string]time.Duration{"days": day, "weeks": 7 * day, "months": 30 * day, "years": 365 * day}

const day = 24 * time.Hour

// checkCertificates checks that the listeners' certificate stays valid for the given time.
func checkCertificates(r *request) error {
	unit, ok := certificateUnits[r.Param("unit")]
	if !ok {
		return rest.Bad("Time unit not recognised. Supported units: days, weeks, months, years.")
	}
	n, err := strconv.Atoi(r.Param("within"))
	if err != nil || n < 1 || n > 1000 {
		return rest.Bad("Invalid expiration value.")
	}
	if r.api.CertificateFile == "" {
		return healthy(r)
	}
	ends, err := certificateEnd(r.api.CertificateFile)
	if err != nil {
		return failed(r, "The certificate cannot be read: "+err.Error(), nil)
	}
	if ends.After(r.api.Now().Add(time.Duration(n) * unit)) {
		return healthy(r)
	}
	return failed(r, "Certificates expiring", object{"expired": []object{{
		"node": r.api.Node, "protocol": "amqp/ssl", "certfile": r.api.CertificateFile, "certfile_expires_on": []string{ends.UTC().Format(time.RFC3339)},
	}}})
}

// certificateEnd returns when the first certificate of a PEM file expires.
func certificateEnd(file string) (time.Time, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return time.Time{}, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, err
		}
		return cert.NotAfter, nil
	}
	return time.Time{}, errors.New("it has no certificate")
}

// aliveness sends one message through a queue.
func aliveness(r *request) error {
	arrived, err := r.Operations.TryMessage(r.HTTP.Context(), r.Actor, r.Param("vhost"))
	if err != nil {
		return err
	}
	if !arrived {
		return failed(r, "aliveness-test failed: the message did not arrive", nil)
	}
	return healthy(r)
}
