package cluster

import (
	"fmt"
	"strconv"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// Server is what a broker says about itself when a client connects.
type Server struct {
	Product string // "RabbitMQ"
	Version string // "3.10.8", "4.1.0-rc.1"
	Cluster string // the name of its cluster
}

func serverOf(properties amqp091.Table) (s Server) {
	s.Product, _ = properties["product"].(string)
	s.Version, _ = properties["version"].(string)
	s.Cluster, _ = properties["cluster_name"].(string)
	return s
}

// Family returns the range that the version belongs to.
func (s Server) Family() Family {
	if s.Product != "RabbitMQ" {
		return UnknownFamily
	}
	parts := strings.SplitN(s.Version, ".", 3)
	if len(parts) < 2 {
		return UnknownFamily
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return UnknownFamily
	}
	minor, err := strconv.Atoi(parts[1])
	switch {
	case err != nil, major < 3, major == 3 && minor < 10:
		return UnknownFamily
	case major == 3:
		return Family3
	case major == 4 && minor < 3:
		return Family40
	}
	return Family43
}

// String is for people: "RabbitMQ 3.10.8".
func (s Server) String() string { return fmt.Sprintf("%s %s", s.Product, s.Version) }
