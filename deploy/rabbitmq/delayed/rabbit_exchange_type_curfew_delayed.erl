%% The exchange type x-delayed-message for RabbitMQ 4.3, without a store. A message to exchange foo that has to wait goes to the quorum
%% queue foo.delay, where Curfew holds it until it is due. Then RabbitMQ dead-letters it to foo again, and it goes where x-delayed-type
%% says, as does at once what need not wait.
-module(rabbit_exchange_type_curfew_delayed).
-behaviour(rabbit_exchange_type).
-include_lib("rabbit_common/include/rabbit.hrl").

-rabbit_boot_step({?MODULE,
                   [{description, "exchange type x-delayed-message (Curfew)"},
                    {mfa, {rabbit_registry, register, [exchange, <<"x-delayed-message">>, ?MODULE]}},
                    {cleanup, {rabbit_registry, unregister, [exchange, <<"x-delayed-message">>]}},
                    {requires, rabbit_registry},
                    {enables, recovery}]}).

-define(UNDELIVERED, 100000). % messages that a queue foo.undelivered keeps, the newest

-export([description/0, serialise_events/0, route/3, validate/1, validate_binding/2, create/2, delete/2, policy_changed/2,
         add_binding/3, remove_bindings/3, assert_args_equivalence/2, info/1, info/2]).

description() -> [{description, <<"Delayed messages wait in a quorum queue for Curfew">>}].
serialise_events() -> false.
info(_) -> [].
info(_, _) -> [].

%% What was dead-lettered from the delay queue has waited. Publishers cannot set that: RabbitMQ 4 takes no x-death from them.
route(X, Msg, Opts) ->
    #resource{name = Waiting} = Queue = beside(X, <<".delay">>),
    case lists:member(Waiting, mc:death_queue_names(Msg)) of
        true -> somewhere(route_now(module(X), X, Msg, Opts), X);
        false -> case waits(Msg) of
                     true -> ok = declare(Queue, X), [Queue];
                     false -> route_now(module(X), X, Msg, Opts)
                 end
    end.

%% What has waited and leads nowhere would hold up the rest: RabbitMQ has 32 dead letters of a queue in flight until each has arrived.
somewhere([], X) ->
    case rabbit_policy:get_arg(<<"alternate-exchange">>, <<"alternate-exchange">>, X) of
        undefined -> Queue = beside(X, <<".undelivered">>),
                     try ok = declare(Queue, X, [{<<"x-max-length">>, long, ?UNDELIVERED}]), [Queue] catch _:_ -> [] end;
        _ -> []
    end;
somewhere(Found, _) -> Found.

route_now(rabbit_exchange_type_direct, #exchange{name = Name}, Msg, _) ->
    rabbit_router:match_routing_key(Name, mc:routing_keys(Msg));
route_now(rabbit_exchange_type_topic, #exchange{name = Name}, Msg, _) -> % RabbitMQ's index of patterns has exchanges of type topic only
    Keys = [words(Key) || Key <- mc:routing_keys(Msg)],
    rabbit_router:match_bindings(Name, fun(#binding{key = Pattern}) ->
                                               Words = words(Pattern),
                                               lists:any(fun(Key) -> matches(Words, Key) end, Keys)
                                       end);
route_now(Module, X, Msg, Opts) ->
    Module:route(X, Msg, Opts).

words(Key) -> binary:split(Key, <<".">>, [global]).

matches([], []) -> true;
matches([<<"#">>], _) -> true;
matches([<<"#">> | Rest] = Pattern, Key) -> matches(Rest, Key) orelse (Key =/= [] andalso matches(Pattern, tl(Key)));
matches([<<"*">> | Rest], [_ | Key]) -> matches(Rest, Key);
matches([Word | Rest], [Word | Key]) -> matches(Rest, Key);
matches(_, _) -> false.

waits(Msg) ->
    positive(mc:x_header(<<"x-delay">>, Msg)) orelse positive(mc:x_header(<<"x-delay-until">>, Msg))
        orelse lists:any(fun(Command) -> mc:x_header(Command, Msg) =/= undefined end, [<<"x-cancel">>, <<"x-replace">>, <<"x-reschedule">>]).

positive({_, N}) when is_number(N) -> N >= 1;
positive({_, Text}) when is_binary(Text) -> try binary_to_integer(Text) > 0 catch error:badarg -> false end;
positive(_) -> false.

%% The delay queue is made here, not in create, so that what RabbitMQ has against it is the answer to the declaration of the exchange.
validate(X = #exchange{arguments = Args}) ->
    case rabbit_misc:table_lookup(Args, <<"x-delayed-type">>) of
        {_, Type} when is_binary(Type), Type =/= <<"x-delayed-message">> ->
            _ = rabbit_exchange:check_type(Type),
            ok = (module(X)):validate(X),
            declare(beside(X, <<".delay">>), X);
        _ ->
            rabbit_misc:protocol_error(precondition_failed, "Invalid argument, 'x-delayed-type' must be an existing exchange type", [])
    end.

%% declare makes the delay queue, unless it is there: an exchange that the old plugin has left has none, and it can be deleted.
declare(Queue, X = #exchange{name = #resource{name = Exchange}}) ->
    declare(Queue, X, [{<<"x-dead-letter-exchange">>, longstr, Exchange},
                       {<<"x-dead-letter-strategy">>, longstr, <<"at-least-once">>},
                       {<<"x-overflow">>, longstr, <<"reject-publish">>},
                       {<<"x-delivery-limit">>, long, -1},
                       {<<"x-consumer-disconnected-timeout">>, long, 1000}]).

declare(Queue, #exchange{options = Options}, More) ->
    Args = [{<<"x-queue-type">>, longstr, <<"quorum">>} | More],
    case rabbit_amqqueue:exists(Queue) orelse rabbit_amqqueue:declare(Queue, true, false, Args, none, maps:get(user, Options, ?INTERNAL_USER)) of
        true -> ok;
        {Made, _} when Made =:= new; Made =:= existing -> ok;
        {protocol_error, Kind, Reason, Values} -> rabbit_misc:protocol_error(Kind, Reason, Values);
        Failed -> rabbit_misc:protocol_error(internal_error, "~ts cannot be declared: ~tp", [rabbit_misc:rs(Queue), Failed])
    end.

%% Curfew binds the delay queue where it is not for this type; here it reads this text, and knows.
validate_binding(X, B = #binding{destination = Destination}) ->
    case beside(X, <<".delay">>) of
        Destination -> {error, {binding_invalid, "curfew_delayed needs no binding to ~ts", [rabbit_misc:rs(Destination)]}};
        _ -> (module(X)):validate_binding(X, B)
    end.

create(Serial, X) -> (module(X)):create(Serial, X).
delete(Serial, X) -> (module(X)):delete(Serial, X).
policy_changed(Old, New) -> (module(Old)):policy_changed(Old, New).
add_binding(Serial, X, B) -> (module(X)):add_binding(Serial, X, B).
remove_bindings(Serial, X, Bs) -> (module(X)):remove_bindings(Serial, X, Bs).
assert_args_equivalence(X, Args) -> (module(X)):assert_args_equivalence(X, Args).

beside(#exchange{name = Name = #resource{name = Exchange}}, End) -> Name#resource{kind = queue, name = <<Exchange/binary, End/binary>>}.

module(#exchange{arguments = Args}) ->
    {_, Type} = rabbit_misc:table_lookup(Args, <<"x-delayed-type">>),
    {ok, Module} = rabbit_registry:lookup_module(exchange, rabbit_registry:binary_to_type(Type)),
    Module.
