# SPDX-License-Identifier: Apache-2.0
"""What tasks do to a phone before a conversation, and what they ask of it afterwards. No model calls these."""

from __future__ import annotations

from typing import Literal

from newskills.graders.tau2.phone import Phone


class FaultyPhone(Phone):
    def set_user_info(self, name: str, phone_number: str) -> None:
        self.surroundings.update(name=name, phone_number=phone_number)

    def set_user_location(self, abroad: bool) -> None:
        self.surroundings["is_abroad"] = abroad

    def turn_airplane_mode_on(self) -> None:
        self._turn_airplane_mode(True)

    def turn_airplane_mode_off(self) -> None:
        self._turn_airplane_mode(False)

    def unseat_sim_card(self) -> None:
        self.device["sim_card_missing"] = True
        self.simulate_network_search()

    def lock_sim_card(self, mode: Literal["pin", "puk"]) -> None:
        self.device["sim_card_status"] = f"locked_{mode}"
        self.simulate_network_search()

    def turn_data_on(self) -> None:
        self.device["data_enabled"] = True

    def turn_data_off(self) -> None:
        self._set_setting("data_enabled", False)

    def turn_roaming_on(self) -> None:
        self._set_setting("roaming_enabled", True)

    def turn_roaming_off(self) -> None:
        self._set_setting("roaming_enabled", False)

    def turn_data_saver_mode_on(self) -> None:
        self.device["data_saver_mode"] = True

    def turn_data_saver_mode_off(self) -> None:
        self.device["data_saver_mode"] = False

    def break_apn_settings(self) -> None:
        self.device["active_apn_settings"]["apn_name"] = "broken"
        self.simulate_network_search()

    def break_apn_mms_setting(self) -> None:
        self.device["active_apn_settings"]["mmsc_url"] = None

    def set_wifi_calling(self, enabled: bool, mms_over_wifi: bool | None = None) -> None:
        self.device["wifi_calling_enabled"] = enabled
        if mms_over_wifi is not None:
            self.device["wifi_calling_mms_over_wifi"] = mms_over_wifi

    def break_vpn(self) -> None:
        """Make the VPN slow, and connect it; it stays slow when it is connected again."""
        self.vpn_performance = "poor"
        self.connect_vpn()
        self.device["vpn_details"]["server_performance"] = self.vpn_performance

    def remove_app_permission(self, app_name: str, permission: str) -> None:
        self._set_permission(app_name, permission, False)

    def assert_airplane_mode_status(self, expected_status: bool) -> bool:
        return bool(self.device["airplane_mode"] == expected_status)

    def assert_service_status(self, expected_status: str) -> bool:
        return bool(self.device["network_connection_status"] == expected_status)

    def assert_mobile_data_status(self, expected_status: bool) -> bool:
        return self._data_works() == expected_status

    def assert_mobile_roaming_status(self, expected_status: bool) -> bool:
        return bool(self.device["roaming_enabled"] == expected_status)

    def assert_mobile_data_saver_mode_status(self, expected_status: bool) -> bool:
        return bool(self.device["data_saver_mode"] == expected_status)

    def assert_internet_speed(self, expected_speed: float, expected_desc: str | None = None) -> bool:
        speed, name = self._measure_speed()
        return (speed or 0.0) >= expected_speed and (expected_desc or name).lower() == name.lower()

    def assert_internet_not_excellent(self) -> bool:
        return self._measure_speed()[1] != "Excellent"

    def assert_can_send_mms(self, expected_status: bool) -> bool:
        return self._sends_mms() == expected_status

    def assert_mobile_data_usage_exceeded(self, expected_status: bool) -> bool:
        return bool(self.surroundings["mobile_data_usage_exceeded"] == expected_status)

    def _set_setting(self, setting: str, value: bool) -> None:
        self.device[setting] = value
        self.simulate_network_search()

    def _turn_airplane_mode(self, wanted: bool) -> None:
        """Turn airplane mode on or off; where it is so already, there and back again, as the benchmark does."""
        self._flip_airplane_mode()
        if self.device["airplane_mode"] != wanted:
            self._flip_airplane_mode()
