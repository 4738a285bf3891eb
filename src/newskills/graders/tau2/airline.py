# SPDX-License-Identifier: Apache-2.0
"""An airline: customers, flights by day, reservations that can be made, changed and cancelled.

The rules are those of the benchmark's own service, its words are not. What it leaves to the agent is not checked here:
whether a reservation may be changed or cancelled at all, and who may have a certificate. Nor are seats set free.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.records import Row
from newskills.graders.tau2.service import RefusedCall
from newskills.graders.tau2.tables import TableService

CabinClass = Literal["business", "economy", "basic_economy"]
TripKind = Literal["round_trip", "one_way"]
Insurance = Literal["yes", "no"]
_NOW = "2024-05-15T15:00:00"
_NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
_NEW_CERTIFICATES = ("certificate_3221322", "certificate_3221323", "certificate_3221324")
_BAG, _INSURANCE = 50, 30
_AIRPORTS = (
    *("SFO San Francisco", "JFK New York", "LAX Los Angeles", "ORD Chicago", "DFW Dallas", "DEN Denver"),
    *("SEA Seattle", "ATL Atlanta", "MIA Miami", "BOS Boston", "PHX Phoenix", "IAH Houston", "LAS Las Vegas"),
    *("MCO Orlando", "EWR Newark", "CLT Charlotte", "MSP Minneapolis", "DTW Detroit", "PHL Philadelphia"),
    "LGA LaGuardia",
)


class FlightOnDay(Struct):
    flight_number: Annotated[str, Meta(description="such as 'HAT001'")]
    date: Annotated[str, Meta(description="YYYY-MM-DD, such as '2024-05-01'")]


class Passenger(Struct):
    first_name: str
    last_name: str
    dob: Annotated[str, Meta(description="date of birth, YYYY-MM-DD")]


class ReservationPayment(Struct):
    payment_id: Annotated[str, Meta(description="a payment method of the user's profile")]
    amount: Annotated[int, Meta(description="in dollars")]


class Airline(TableService):
    agent_tools = (
        *("book_reservation", "calculate", "cancel_reservation", "get_flight_status", "get_reservation_details"),
        *("get_user_details", "list_all_airports", "search_direct_flight", "search_onestop_flight"),
        *("send_certificate", "transfer_to_human_agents", "update_reservation_baggages"),
        *("update_reservation_flights", "update_reservation_passengers"),
    )

    def book_reservation(
        self,
        user_id: str,
        origin: str,
        destination: str,
        flight_type: TripKind,
        cabin: CabinClass,
        flights: list[FlightOnDay],
        passengers: list[Passenger],
        payment_methods: list[ReservationPayment],
        total_baggages: int,
        nonfree_baggages: int,
        insurance: Insurance,
    ) -> Row:
        """Makes a reservation, and returns it.

        user_id: such as 'sara_doe_496'
        origin: airport in three letters, such as 'SFO'
        destination: airport in three letters, such as 'JFK'
        flight_type: 'one_way' or 'round_trip'
        cabin: 'basic_economy', 'economy' or 'business'
        flights: all flights of the trip, in order
        passengers: all who fly
        payment_methods: what is paid with; the amounts add up to the price
        total_baggages: number of checked bags, free ones included
        nonfree_baggages: number of checked bags that are paid for
        insurance: whether travel insurance is bought: 'yes' or 'no'
        """
        legs, people = _read_objects(flights, FlightOnDay), _read_objects(passengers, Passenger)
        payments = _read_objects(payment_methods, ReservationPayment)
        user = self._known_user(user_id)
        reservation_id = next((free for free in _NEW_RESERVATIONS if free not in self.data["reservations"]), None)
        if reservation_id is None:
            raise RefusedCall("there are too many reservations")
        reservation: Row = {
            "reservation_id": reservation_id,
            "user_id": user_id,
            "origin": origin,
            "destination": destination,
            "flight_type": _convert_value(flight_type, TripKind),
            "cabin": _convert_value(cabin, CabinClass),
            "flights": [],
            "passengers": people,
            "payment_history": payments,
            "created_at": _NOW,
            "total_baggages": _convert_value(total_baggages, int),
            "nonfree_baggages": _convert_value(nonfree_baggages, int),
            "insurance": _convert_value(insurance, Insurance),
            "status": None,
        }
        days = [self._bookable_day(leg, cabin, len(people)) for leg in legs]
        reservation["flights"] = [self._flight_leg(leg, cabin) for leg in legs]
        fares = sum(leg["price"] for leg in reservation["flights"])
        price = (fares + _INSURANCE * (insurance == "yes")) * len(people) + _BAG * _check_number(nonfree_baggages)
        _check_payments(user["payment_methods"], payments, price)
        _pay_for_booking(user["payment_methods"], payments)
        for day in days:
            day["available_seats"][cabin] -= len(people)
        self.data["reservations"][reservation_id] = reservation
        user["reservations"].append(reservation_id)
        return reservation

    def cancel_reservation(self, reservation_id: str) -> Row:
        """Cancels a whole reservation, and returns it. All that was paid goes back to where it came from.

        reservation_id: such as 'ZFA04Y'
        """
        reservation = self._known_reservation(reservation_id)
        refunds = [{**payment, "amount": -payment["amount"]} for payment in reservation["payment_history"]]
        reservation["payment_history"] += refunds
        reservation["status"] = "cancelled"
        return reservation

    def get_reservation_details(self, reservation_id: str) -> Row:
        """Shows a reservation: flights, passengers, bags, insurance and payments.

        reservation_id: such as '8JX2WO'
        """
        return _shown_reservation(self._known_reservation(reservation_id))

    def get_user_details(self, user_id: str) -> Row:
        """Shows a user with membership, payment methods and the ids of reservations.

        user_id: such as 'sara_doe_496'
        """
        return self._known_user(user_id)

    def list_all_airports(self) -> list[Row]:
        """Lists all airports: three letters, and the city."""
        return [{"iata": airport[:3], "city": airport[4:]} for airport in _AIRPORTS]

    def search_direct_flight(self, origin: Any, destination: Any, date: Any) -> list[Row]:
        """Lists the flights from one city to another on a day that can be booked, with seats and prices.

        origin: airport in three letters, such as 'JFK'
        destination: airport in three letters, such as 'LAX'
        date: YYYY-MM-DD, such as '2024-01-01'
        """
        return self._search_flights(date, origin, destination)

    def search_onestop_flight(self, origin: Any, destination: Any, date: Any) -> list[list[Row]]:
        """Lists pairs of flights from one city to another with one stop, the first of them on a day.

        origin: airport in three letters, such as 'JFK'
        destination: airport in three letters, such as 'LAX'
        date: YYYY-MM-DD, such as '2024-05-01'
        """
        pairs = []
        for first in self._search_flights(date, origin):
            arrival = first["scheduled_arrival_time_est"]
            # As there: the next day is written without a leading zero, and then has no flights.
            second_date = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
            for second in self._search_flights(second_date, first["destination"], destination, arrival):
                pairs.append([{**first, "date": date}, {**second, "date": second_date}])
        return pairs

    def send_certificate(self, user_id: str, amount: int) -> str:
        """Gives a user a travel certificate. Take care!

        user_id: such as 'sara_doe_496'
        amount: its value in dollars
        """
        methods = self._known_user(user_id)["payment_methods"]
        certificate = next((free for free in _NEW_CERTIFICATES if free not in methods), None)
        if certificate is None:
            raise RefusedCall("there are too many certificates")
        methods[certificate] = {
            "source": "certificate",
            "id": certificate,
            "amount": _convert_value(amount, float),
        }
        return f"{user_id} has the new certificate {certificate} with amount {amount}"

    def update_reservation_baggages(
        self, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> Row:
        """Changes the checked bags of a reservation, and returns it.

        reservation_id: such as 'ZFA04Y'
        total_baggages: the new number of checked bags, free ones included
        nonfree_baggages: the new number of checked bags that are paid for
        payment_id: such as 'credit_card_7815826', 'gift_card_7815826' or 'certificate_7815826'
        """
        reservation = self._known_reservation(reservation_id)
        more = max(0, _check_number(nonfree_baggages) - reservation["nonfree_baggages"])
        self._charge_payment(reservation, payment_id, _BAG * more)
        # The values as they came: so the benchmark stores them, and compares them.
        reservation |= {"total_baggages": total_baggages, "nonfree_baggages": nonfree_baggages}
        return _shown_reservation(reservation)

    def update_reservation_flights(
        self, reservation_id: str, cabin: CabinClass, flights: list[FlightOnDay], payment_id: str
    ) -> Row:
        """Changes the flights or the cabin of a reservation, and returns it.

        reservation_id: such as 'ZFA04Y'
        cabin: 'basic_economy', 'economy' or 'business'
        flights: ALL flights of the changed reservation, also those that stay as they are
        payment_id: such as 'credit_card_7815826', 'gift_card_7815826' or 'certificate_7815826'
        """
        wanted = _read_objects(flights, FlightOnDay)
        reservation = self._known_reservation(reservation_id)
        passengers, legs = len(reservation["passengers"]), []
        for leg in wanted:
            kept = next((old for old in reservation["flights"] if leg.items() <= old.items()), None)
            if kept is None or cabin != reservation["cabin"]:
                self._bookable_day(leg, cabin, passengers)
                kept = self._flight_leg(leg, cabin)
            legs.append(kept)
        before, after = (sum(leg["price"] for leg in some) for some in (reservation["flights"], legs))
        self._charge_payment(reservation, payment_id, (after - before) * passengers)
        reservation |= {"flights": legs, "cabin": cabin}
        return _shown_reservation(reservation)

    def update_reservation_passengers(self, reservation_id: str, passengers: list[Passenger]) -> Row:
        """Changes who flies on a reservation, and returns it. The number of passengers stays.

        reservation_id: such as 'ZFA04Y'
        passengers: all who fly
        """
        # What is no list of objects is stored as it came: so it is there, and is then not what was wanted.
        people = _read_objects(passengers, Passenger) if _are_objects(passengers) else passengers
        reservation = self._known_reservation(reservation_id)
        if len(people) != len(reservation["passengers"]):
            raise RefusedCall("the number of passengers is another")
        reservation["passengers"] = people
        return _shown_reservation(reservation)

    def get_flight_status(self, flight_number: str, date: str) -> str:
        """Tells the status of a flight on a day.

        flight_number: such as 'HAT001'
        date: YYYY-MM-DD, such as '2024-05-01'
        """
        return str(self._flight_day(flight_number, date)["status"])

    def _known_row(self, table: str, key: str) -> Row:
        row = self.row(table, key)
        if row is None:
            raise RefusedCall(f"{table.removesuffix('s')} {key} not found")
        return row

    def _known_user(self, user_id: str) -> Row:
        return self._known_row("users", user_id)

    def _known_reservation(self, reservation_id: str) -> Row:
        return self._known_row("reservations", reservation_id)

    def _flight_day(self, flight_number: str, date: str) -> Row:
        days = self._known_row("flights", flight_number)["dates"]
        if date not in days:
            raise RefusedCall(f"flight {flight_number} not found on {date}")
        day: Row = days[date]
        return day

    def _bookable_day(self, leg: Row, cabin: str, passengers: int) -> Row:
        """Return the flight's day, if so many seats of the class are free. Raises RefusedCall where it cannot be
        booked."""
        number, date = leg["flight_number"], leg["date"]
        day = self._flight_day(number, date)
        if day["status"] != "available":
            raise RefusedCall(f"flight {number} cannot be booked on {date}")
        if day["available_seats"][_convert_value(cabin, CabinClass)] < passengers:
            raise RefusedCall(f"flight {number} has not enough seats")
        return day

    def _flight_leg(self, leg: Row, cabin: str) -> Row:
        flight = self._known_row("flights", leg["flight_number"])
        route = {"origin": flight["origin"], "destination": flight["destination"]}
        return {**route, **leg, "price": flight["dates"][leg["date"]]["prices"][cabin]}

    def _search_flights(self, date: Any, origin: Any, destination: Any = None, leave_after: str = "") -> list[Row]:
        """Return the flights that can be booked on a day. A city that is null is any city, as in the benchmark, and
        models may say null."""
        if isinstance(date, list | dict):
            raise RefusedCall("date is no text")
        shown = ("flight_number", "origin", "destination")
        times = ("scheduled_departure_time_est", "scheduled_arrival_time_est")
        hits = []
        for flight in self.data["flights"].values():
            day = flight["dates"].get(date)
            if (
                origin in (None, flight["origin"])
                and destination in (None, flight["destination"])
                and day is not None
                and day["status"] == "available"
                and flight["scheduled_departure_time_est"] >= leave_after
            ):
                hits.append({key: flight[key] for key in (*shown, *times)} | {"date": None} | day)
        return hits

    def _charge_payment(self, reservation: Row, payment_id: str, amount: float) -> None:
        """Take the amount of a change from a payment method; below 0 it is a refund."""
        methods = self._known_user(reservation["user_id"])["payment_methods"]
        if payment_id not in methods:
            raise RefusedCall("payment method not found")
        method = methods[payment_id]
        if method["source"] == "certificate":
            raise RefusedCall("a certificate cannot be used for a change")
        if method["source"] == "gift_card":
            if method["amount"] < amount:
                raise RefusedCall("the gift card does not cover the price")
            method["amount"] -= amount
        if amount:
            reservation["payment_history"].append(
                {"payment_id": payment_id, "amount": _convert_value(amount, int)}
            )


def _shown_reservation(reservation: Row) -> Row:
    return {**reservation, "status": reservation.get("status")}


def _check_payments(methods: Row, payments: list[Row], price: float) -> None:
    for payment in payments:
        method = methods.get(payment["payment_id"])
        if method is None:
            raise RefusedCall(f"payment method {payment['payment_id']} not found")
        if method.get("amount", payment["amount"]) < payment["amount"]:
            raise RefusedCall(f"payment method {payment['payment_id']} has not enough balance")
    paid = sum(payment["amount"] for payment in payments)
    if paid != price:
        raise RefusedCall(f"the payments do not add up: the price is {price}, but {paid} is paid")


def _pay_for_booking(methods: Row, payments: list[Row]) -> None:
    """Take the payments from gift cards and certificates. A certificate is spent whole; given twice, it is spent, and
    nothing is booked, as in the benchmark."""
    for payment in payments:
        method = methods.get(payment["payment_id"])
        if method is None:
            raise RefusedCall(f"the certificate {payment['payment_id']} is spent")
        if method["source"] == "gift_card":
            method["amount"] -= payment["amount"]
        elif method["source"] == "certificate":
            del methods[payment["payment_id"]]


def _read_objects(values: Any, kind: type[Struct]) -> list[Row]:
    if not _are_objects(values):
        raise RefusedCall(f"{values!r:.200} is no list of objects with {', '.join(kind.__struct_fields__)}")
    return [msgspec.to_builtins(_convert_value(value, kind)) for value in values]


def _are_objects(values: Any) -> bool:
    """Return whether all values are objects; an empty text or object is an empty list, as there."""
    if not isinstance(values, list | dict | str):
        raise RefusedCall(f"{values!r:.200} is no list")
    return all(isinstance(value, dict) for value in values)


def _convert_value(value: Any, kind: Any) -> Any:
    try:
        plain_value = int(value) if isinstance(value, bool) else value
        return msgspec.convert(plain_value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise RefusedCall(f"{value!r:.200}: {error}") from error


def _check_number(value: Any) -> float:
    if not isinstance(value, int | float):
        raise RefusedCall(f"{value!r:.200} is no number")
    return value
