# SPDX-License-Identifier: Apache-2.0
"""A mobile phone that the simulated user holds: settings, SIM card, apps, and what of them works where it is."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from newskills.base.records import Row
from newskills.graders.tau2.service import RefusedCall, ToolService

NetworkMode = Literal["4g_5g_preferred", "4g_only", "3g_only", "2g_only"]
_ONLY = {"4g_only": "4G", "3g_only": "3G", "2g_only": "2G"}
_MEGABITS = {"2G": (0.1, 0.4), "3G": (1.0, 5.0), "4G": (10.0, 100.0), "5G": (50.0, 500.0)}
_SHARE_OF_SPEED = {"none": 0.0, "poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0}
_SPEEDS = ((1, "Very Poor"), (5, "Poor"), (25, "Fair"), (100, "Good"))
_PERMISSIONS = ("sms", "storage", "phone", "network")
_SIM = {
    "active": "The SIM card is active: it works.",
    "missing": "The SIM card is missing.",
    "locked_pin": "The SIM card is locked: it asks for its PIN.",
    "locked_puk": "The SIM card is locked: it asks for its PUK.",
}


class AccessPoint(Struct, forbid_unknown_fields=True):
    apn_name: Literal["internet", "broken"] = "internet"
    reset_at_reboot: bool = False
    mms_apn: str | None = "mms"
    mmsc_url: str | None = "http://mms.carrier.com/mms/wapenc"
    mms_proxy: str | None = None
    mms_port: int | None = None


class Phone(ToolService):
    """`user_data`: `device`, and `surroundings`: who holds it, where, and what the network lets them do."""

    user_tools = (
        *("can_send_mms", "check_apn_settings", "check_app_permissions", "check_app_status"),
        *("check_data_restriction_status", "check_installed_apps", "check_network_mode_preference"),
        *("check_network_status", "check_payment_request", "check_sim_status", "check_status_bar"),
        *("check_vpn_status", "check_wifi_calling_status", "check_wifi_status", "connect_vpn", "disconnect_vpn"),
        *("grant_app_permission", "make_payment", "reboot_device", "reseat_sim_card", "reset_apn_settings"),
        *("run_speed_test", "set_apn_settings", "set_network_mode_preference", "toggle_airplane_mode"),
        *("toggle_data", "toggle_data_saver_mode", "toggle_roaming", "toggle_wifi", "toggle_wifi_calling"),
    )

    def __init__(self, data: Row, user_data: Row | None = None) -> None:
        stored = user_data or {}
        device: Row = {"wifi_ssid": None, "vpn_details": None, **stored.get("device", {})}
        device["active_apn_settings"] = _access_point(device.get("active_apn_settings", {}))
        surroundings = {
            "name": None,
            "phone_number": None,
            "is_abroad": False,
            "roaming_allowed": False,
            "signal_strength": {"2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent"},
            "mobile_data_usage_exceeded": False,
            "line_active": True,
            "payment_request": None,
            **stored.get("surroundings", {}),
        }
        super().__init__(data, {"device": device, "surroundings": surroundings})
        self.vpn_performance = "excellent"

    @property
    def device(self) -> Row:
        device: Row = self.user_data["device"]
        return device

    @property
    def surroundings(self) -> Row:
        surroundings: Row = self.user_data["surroundings"]
        return surroundings

    def check_status_bar(self) -> str:
        """Shows the icons at the top of your screen: signal, mobile data and data saver, Wi-Fi, VPN, battery."""
        return self._status_bar()

    def check_network_status(self) -> str:
        """Shows how your phone is connected: airplane mode, SIM card, signal, kind of network, mobile data, roaming,
        Wi-Fi."""
        device = self.device
        wifi = f" to {device['wifi_ssid']}" if device["wifi_connected"] else ""
        return "\n".join(
            [
                f"airplane mode: {_on_or_off(device['airplane_mode'])}",
                f"SIM card: {self._sim_status()}",
                f"mobile network: {device['network_connection_status']}",
                f"signal: {device['network_signal_strength']}",
                f"kind of network: {device['network_technology_connected']}",
                f"mobile data enabled: {_yes_or_no(device['data_enabled'])}",
                f"data roaming enabled: {_yes_or_no(device['roaming_enabled'])}",
                f"Wi-Fi: {_on_or_off(device['wifi_enabled'])}",
                f"Wi-Fi connected: {_yes_or_no(device['wifi_connected'])}{wifi}",
            ]
        )

    def check_network_mode_preference(self) -> str:
        """Shows which kinds of network your phone prefers."""
        return f"preferred networks: {self.device['network_mode_preference']}"

    def set_network_mode_preference(self, mode: NetworkMode) -> str:
        """Changes which kinds of network your phone prefers. 4G and 5G are fast, and need more battery.

        mode: 4g_5g_preferred, 4g_only, 3g_only or 2g_only
        """
        if mode not in ("4g_5g_preferred", *_ONLY):
            return self._with_status_bar(f"Not set: {mode} is none of 4g_5g_preferred, {', '.join(_ONLY)}.")
        self.device["network_mode_preference"] = mode
        self.simulate_network_search()
        return self._with_status_bar(f"The preferred networks are now {mode}.")

    def run_speed_test(self) -> str:
        """Measures how fast your mobile internet is, and says what that is enough for."""
        speed, name = self._measure_speed()
        if speed is None:
            return "The speed test failed: no connection."
        return f"{speed:.2f} Mbps: {name}"

    def toggle_airplane_mode(self) -> str:
        """Turns airplane mode on or off. While it is on, nothing is connected: no mobile network, no Wi-Fi."""
        self._flip_airplane_mode()
        return self._with_status_bar(f"Airplane mode is now {_on_or_off(self.device['airplane_mode'])}.")

    def check_sim_status(self) -> str:
        """Shows whether your SIM card works, is missing, or is locked by a PIN or PUK."""
        return _SIM[self._sim_status()]

    def reseat_sim_card(self) -> str:
        """Takes your SIM card out and puts it in again."""
        self.device["sim_card_missing"] = False
        self.simulate_network_search()
        return self._with_status_bar("The SIM card is in its place.")

    def toggle_data(self) -> str:
        """Turns mobile data on or off."""
        self._flip_setting("data_enabled")
        return self._with_status_bar(f"Mobile data is now {_on_or_off(self.device['data_enabled'])}.")

    def toggle_roaming(self) -> str:
        """Turns data roaming on or off: mobile data in the networks of other companies, such as abroad."""
        self._flip_setting("roaming_enabled")
        return self._with_status_bar(f"Data roaming is now {_on_or_off(self.device['roaming_enabled'])}.")

    def check_data_restriction_status(self) -> str:
        """Shows whether the data saver limits what your phone uses."""
        return f"The data saver is {_on_or_off(self.device['data_saver_mode'])}."

    def toggle_data_saver_mode(self) -> str:
        """Turns the data saver on or off. While it is on, less data is used, and it may be slower."""
        self._flip_setting("data_saver_mode", search=False)
        return self._with_status_bar(f"The data saver is now {_on_or_off(self.device['data_saver_mode'])}.")

    def check_apn_settings(self) -> str:
        """Shows the access point of mobile data: its name, and the address for picture messages (MMSC)."""
        settings = self.device["active_apn_settings"]
        return f"APN name: {settings['apn_name']}\nMMSC address: {settings['mmsc_url'] or 'none'}"

    def set_apn_settings(self, apn_settings: AccessPoint) -> str:
        """Sets the access point of mobile data.

        apn_settings: what is not given is as when the phone was new
        """
        self.device["active_apn_settings"] = _access_point(apn_settings)
        self.simulate_network_search()
        return self._with_status_bar(f"The APN is now {self.device['active_apn_settings']['apn_name']}.")

    def reset_apn_settings(self) -> str:
        """Makes the access point as when the phone was new, at the next restart."""
        self.device["active_apn_settings"]["reset_at_reboot"] = True
        self.simulate_network_search()
        return self._with_status_bar("The APN settings will be reset at the next restart.")

    def check_wifi_status(self) -> str:
        """Shows whether Wi-Fi is on, what it is connected to, and how strong that is."""
        device = self.device
        if not device["wifi_enabled"] or not device["wifi_connected"]:
            return f"Wi-Fi is {_on_or_off(device['wifi_enabled'])}, and not connected."
        return f"Wi-Fi is ON, connected to {device['wifi_ssid']}; its signal is {device['wifi_signal_strength']}."

    def toggle_wifi(self) -> str:
        """Turns Wi-Fi on or off. In airplane mode it stays as it is."""
        if self.device["airplane_mode"]:
            return self._with_status_bar("Airplane mode is ON: Wi-Fi stays as it is.")
        self._flip_setting("wifi_enabled", search=False)
        if not self.device["wifi_enabled"]:
            self._leave_wifi()
        return self._with_status_bar(f"Wi-Fi is now {_on_or_off(self.device['wifi_enabled'])}.")

    def check_wifi_calling_status(self) -> str:
        """Shows whether calls may go over Wi-Fi."""
        return f"Wi-Fi calling is {_on_or_off(self.device['wifi_calling_enabled'])}."

    def toggle_wifi_calling(self) -> str:
        """Turns calls over Wi-Fi on or off. They help where the mobile network is weak."""
        self._flip_setting("wifi_calling_enabled", search=False)
        return self._with_status_bar(f"Wi-Fi calling is now {_on_or_off(self.device['wifi_calling_enabled'])}.")

    def check_vpn_status(self) -> str:
        """Shows whether your phone is connected to a VPN, and to which."""
        details = self.device["vpn_details"]
        if self.device["vpn_connected"]:
            shown = "; ".join(f"{name}: {value}" for name, value in (details or {}).items())
            return f"The VPN is ON and connected. {shown}"
        return f"The VPN is {_on_or_off(self.device['vpn_enabled_setting'])}, and not connected."

    def connect_vpn(self) -> str:
        """Connects your phone to your VPN."""
        if self.device["vpn_connected"]:
            return "The VPN is connected already."
        details = {"server_address": "192.168.1.1", "protocol": "OpenVPN"}
        details["server_performance"] = self.vpn_performance
        self.device.update(vpn_connected=True, vpn_details=details)
        return self._with_status_bar("The VPN is connected.")

    def disconnect_vpn(self) -> str:
        """Disconnects your phone from the VPN, which may make it faster."""
        if not self.device["vpn_connected"]:
            return self._with_status_bar("There is no VPN to disconnect from.")
        self._leave_vpn()
        return self._with_status_bar("The VPN is disconnected.")

    def check_installed_apps(self) -> str:
        """Lists the apps on your phone."""
        return f"apps: {', '.join(self.device['app_statuses'])}"

    def check_app_status(self, app_name: str) -> str:
        """Shows an app with its permissions.

        app_name: as it stands in the list of apps
        """
        return self._permissions_of(app_name)

    def check_app_permissions(self, app_name: str) -> str:
        """Shows what an app is permitted to use, such as storage or the network.

        app_name: as it stands in the list of apps
        """
        return self._permissions_of(app_name)

    def grant_app_permission(self, app_name: str, permission: str) -> str:
        """Permits an app to use something that it needs, such as storage.

        app_name: as it stands in the list of apps
        permission: in lower case
        """
        return self._with_status_bar(self._set_permission(app_name, permission, True))

    def can_send_mms(self) -> str:
        """Shows whether picture messages (MMS) can be sent."""
        verb = "can" if self._sends_mms() else "cannot"
        return f"Picture messages {verb} be sent."

    def reboot_device(self) -> str:
        """Restarts your phone."""
        if self.device["active_apn_settings"]["reset_at_reboot"]:
            self.device["active_apn_settings"] = _access_point({})
        self.simulate_network_search()
        return self._with_status_bar("The phone has restarted, and looked for its network.")

    def check_payment_request(self) -> str:
        """Shows what the agent has asked you to pay."""
        request = self.surroundings["payment_request"]
        if request is None:
            return "There is nothing to pay."
        return f"You are asked to pay {request['amount_due']} USD for the bill {request['bill_id']}."

    def make_payment(self) -> str:
        """Pays what the agent has asked you to pay."""
        request = self.surroundings["payment_request"]
        if request is None:
            return "There is nothing to pay."
        request["paid"] = True
        return f"You have paid {request['amount_due']} USD for the bill {request['bill_id']}."

    def simulate_network_search(self) -> None:
        """Update what the phone is connected to, after anything that matters for it has changed."""
        device, strengths = self.device, self.surroundings["signal_strength"]
        reachable = (
            self._sim_status() == "active"
            and not device["airplane_mode"]
            and device["active_apn_settings"]["apn_name"] != "broken"
            and self.surroundings["line_active"]
        )
        preferred = "5G" if strengths.get("5G", "none") != "none" else "4G"
        technology = "none"
        if reachable:
            technology = _ONLY.get(device["network_mode_preference"], preferred)
        network_connection_status = "connected" if reachable else "no_service"
        device.update(
            network_connection_status=network_connection_status,
            network_technology_connected=technology,
            network_signal_strength=strengths.get(technology, "none"),
        )

    def _flip_setting(self, setting: str, search: bool = True) -> None:
        self.device[setting] = not self.device[setting]
        if search:
            self.simulate_network_search()

    def _flip_airplane_mode(self) -> None:
        device = self.device
        if device["wifi_enabled"] or not device["airplane_mode"]:
            self._leave_wifi()
        if not device["airplane_mode"]:
            self._leave_vpn()
        self._flip_setting("airplane_mode")

    def _leave_wifi(self) -> None:
        self.device.update(wifi_connected=False, wifi_ssid=None, wifi_signal_strength="none")

    def _leave_vpn(self) -> None:
        if self.device["vpn_connected"]:
            self.device.update(vpn_connected=False, vpn_details=None)

    def _sim_status(self) -> str:
        if self.device["sim_card_missing"]:
            return "missing"
        return str(self.device["sim_card_status"])

    def _set_permission(self, app_name: str, permission: str, allowed: bool) -> str:
        app, name = self.device["app_statuses"].get(app_name), permission.lower()
        if app is None:
            return f"Not done: there is no app {app_name}."
        if name not in _PERMISSIONS:
            return f"Not done: {app_name} has no permission {name}, but {', '.join(_PERMISSIONS)}."
        app["permissions"][name] = allowed
        verb = "may now" if allowed else "may no longer"
        return f"{app_name} {verb} use: {name}."

    def _permissions_of(self, app_name: str) -> str:
        app = self.device["app_statuses"].get(app_name)
        if app is None:
            return f"There is no app {app_name}."
        allowed = [name for name in _PERMISSIONS if app["permissions"][name]]
        return f"{app_name} is permitted to use: {', '.join(allowed) or 'nothing'}"

    def _data_works(self) -> bool:
        device, around = self.device, self.surroundings
        return (
            not device["airplane_mode"]
            and device["network_signal_strength"] != "none"
            and device["network_connection_status"] != "no_service"
            and (not around["is_abroad"] or (device["roaming_enabled"] and around["roaming_allowed"]))
            and device["data_enabled"]
            and not around["mobile_data_usage_exceeded"]
        )

    def _measure_speed(self) -> tuple[float | None, str]:
        """Return the speed in Mbps, and what that is called."""
        device = self.device
        if not self._data_works():
            return None, "No Connection"
        slow_vpn = device["vpn_connected"] and (device["vpn_details"] or {}).get("server_performance") == "poor"
        vpn_share = 0.1 if slow_vpn else 1.0
        saver_share = 0.2 if device["data_saver_mode"] else 1.0
        share = vpn_share * saver_share
        low, high = _MEGABITS.get(device["network_technology_connected"], (0.0, 0.0))
        speed = round((low + high) / 2.0 * _SHARE_OF_SPEED[device["network_signal_strength"]] * share, 2)
        return speed, next((name for limit, name in _SPEEDS if speed < limit), "Excellent")

    def _sends_mms(self) -> bool:
        device = self.device
        app = device["app_statuses"].get("messaging", {"permissions": dict.fromkeys(_PERMISSIONS, False)})
        return (
            self._data_works()
            and device["network_technology_connected"] != "2G"
            and not (device["wifi_calling_enabled"] and device["wifi_calling_mms_over_wifi"])
            and device["active_apn_settings"]["mmsc_url"] is not None
            and app["permissions"]["storage"]
            and app["permissions"]["sms"]
        )

    def _status_bar(self) -> str:
        device = self.device
        if device["airplane_mode"]:
            icons = ["airplane mode"]
        else:
            icons = [f"signal {device['network_signal_strength']}"]
            connected = device["network_technology_connected"] != "none"
            if connected:
                icons.append(device["network_technology_connected"])
            if connected and device["data_enabled"]:
                icons.append("mobile data enabled")
                if device["data_saver_mode"]:
                    icons.append("data saver")
            else:
                icons.append("mobile data disabled")
        if device["wifi_enabled"] and device["wifi_connected"]:
            icons.append(f"Wi-Fi {device['wifi_ssid'] or ''}".strip())
        if device["vpn_connected"]:
            icons.append("VPN")
        return f"status bar: {', '.join([*icons, 'battery ' + str(device['battery_level']) + '%'])}"

    def _with_status_bar(self, text: str) -> str:
        return f"{text}\n{self._status_bar()}"


def _on_or_off(setting: object) -> str:
    if setting:
        return "ON"
    return "OFF"


def _yes_or_no(setting: object) -> str:
    if setting:
        return "Yes"
    return "No"


def _access_point(settings: Any) -> Row:
    try:
        made: Row = msgspec.to_builtins(msgspec.convert(settings, AccessPoint, strict=False))
    except msgspec.ValidationError as error:
        raise RefusedCall(f"apn_settings: {error}") from error
    return made
