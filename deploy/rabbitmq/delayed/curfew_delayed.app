{application, curfew_delayed,
 [{description, "Exchange type x-delayed-message, whose messages Curfew holds"},
  {vsn, "VERSION"},
  {modules, [rabbit_exchange_type_curfew_delayed]},
  {registered, []},
  {applications, [kernel, stdlib, rabbit_common, rabbit]},
  {broker_version_requirements, ["4.3.0"]}]}.
